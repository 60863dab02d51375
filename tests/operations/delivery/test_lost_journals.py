"""A machine without a journal pauses payments once requests were sent, and begins one only after two people resumed."""

import logging
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from celery import signals
from django.db import OperationalError, transaction
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.delivery import acceptance, journal, restore_check, send
from backoffice.operations.delivery.record import record_timeout
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.monitoring import Incident, Pause, is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, PauseCause
from backoffice.operations.states import Status
from backoffice.operations.workflow.prepare import prepare_operation
from backoffice.tasks import compare_at_start
from tests import factories
from tests.backups import backup
from tests.operations.delivery.test_late_senders import claimed
from tests.operations.delivery.test_restored_database import resume
from tests.operations.forgeries import forge_entry
from tests.operations.provider_list import shows
from tests.operations.steps import status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]


@pytest.fixture
def sent(provider: StubProvider, released: Operation) -> Operation:
    """A withdrawal that was sent, and whose line is in the journal."""
    shows(provider)
    send.send_operation(released.pk)
    assert len(provider.posts) == 1
    Attempt.objects.update(provider_transaction_id="T-1")
    return released


@pytest.fixture
def next_one(sent: Operation, preparer: User, approver: User) -> Operation:
    """Another withdrawal, which is released."""
    return factories.release(factories.approved(preparer, approver, amount=Decimal(70)), approver)


def lose_journal() -> bytes:
    """All processes stop, and the journal of this machine is gone when they start again."""
    content = journal.own_path().read_bytes()
    journal.own_path().unlink()
    restore_check.forget_positions()
    return content


def find_loss() -> None:
    lose_journal()
    restore_check.compare_with_journals()
    assert is_paused()


def used() -> int:
    return Entry.objects.filter(action=Action.JOURNAL_IN_USE).count()


def test_a_worker_begins_its_journal_when_it_starts(
    provider: StubProvider, preparer: User, approver: User, released: Operation
) -> None:
    """So that payments sent from another machine meanwhile do not make its empty folder a lost journal."""
    signals.worker_init.send(sender=None)
    another = factories.approved(preparer, approver, amount=Decimal(70))
    with transaction.atomic():
        audit.record(Action.OPERATION_CLAIMED, actor=None, target=another)
    shows(provider)
    send.send_operation(released.pk)
    assert (len(provider.posts), is_paused()) == (1, False)


def test_a_worker_starts_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        raise OperationalError

    monkeypatch.setattr(restore_check, "compare_with_journals", away)
    compare_at_start()
    assert "The journals are not compared yet: OperationalError" in caplog.text


@pytest.mark.parametrize("by", ["send", "sweeper"])
def test_a_lost_journal_pauses_payments(provider: StubProvider, next_one: Operation, by: str) -> None:
    lose_journal()
    for _ in range(3):
        if by == "send":
            send.send_operation(next_one.pk)
        else:
            restore_check.compare_with_journals()
    assert (len(provider.posts), Release.objects.count()) == (1, 0)
    assert Pause.objects.get().cause == PauseCause.JOURNAL_LOST
    incident = Incident.objects.get()
    assert (incident.kind, incident.evidence) == (
        IncidentKind.JOURNAL_LOST,
        {"machine": journal.own_path().stem},
    )
    assert not journal.own_path().exists()


def test_a_lost_journal_deletes_every_release(next_one: Operation, preparer: User, approver: User) -> None:
    factories.release(factories.approved(preparer, approver, amount=Decimal(80)), approver)
    lose_journal()
    send.send_operation(next_one.pk)
    assert not Release.objects.exists()


def test_a_promoted_database_without_its_journal_sends_nothing_again(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """The copy is started on another machine, which has no journal."""
    shows(provider)
    factories.release(first := factories.approved(preparer, approver), approver)
    send.send_operation(first.pk)
    Attempt.objects.update(provider_transaction_id="T-1")
    second = factories.release(factories.approved(preparer, approver, amount=Decimal(70)), approver)
    before = backup()
    send.send_operation(second.pk)
    before.restore()
    lose_journal()
    send.send_operation(second.pk)
    assert (len(provider.posts), is_paused(), Release.objects.exists()) == (2, True, False)


def test_two_people_let_it_begin_a_new_one(
    provider: StubProvider, sent: Operation, preparer: User, approver: User
) -> None:
    find_loss()
    resume(preparer, approver)
    factories.release(further := factories.approved(preparer, approver, amount=Decimal(70)), approver)
    send.send_operation(further.pk)
    assert (len(provider.posts), is_paused(), used()) == (2, False, 1)
    assert journal.first_line(journal.own_path())["line"] == "database"
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert (is_paused(), used()) == (False, 1)


def test_a_second_loss_pauses_again(sent: Operation, preparer: User, approver: User) -> None:
    find_loss()
    resume(preparer, approver)
    restore_check.compare_with_journals()
    assert not is_paused()
    find_loss()


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_journal_that_was_brought_back_uses_up_the_report(
    sent: Operation, preparer: User, approver: User, is_stopped: bool
) -> None:
    content = lose_journal()
    restore_check.compare_with_journals()
    assert is_paused()
    journal.own_path().write_bytes(content)
    if is_stopped:
        restore_check.forget_positions()
        resume(preparer, approver)
    restore_check.compare_with_journals()
    if not is_stopped:
        resume(preparer, approver)
    restore_check.compare_with_journals()
    assert not is_paused()
    find_loss()


def test_a_forged_resumption_lets_no_journal_begin(sent: Operation, preparer: User) -> None:
    find_loss()
    form = KINDS["resume"].form_type({"reason": "Nobody approves it"})
    assert form.is_valid(), form.errors
    proposal = prepare_operation(uuid4(), actor=preparer, kind="resume", payload=form.payload())
    Pause.objects.update(ended_at=timezone.now(), ended_by=proposal)
    pause.clear_pause_cache()
    restore_check.compare_with_journals()
    assert (is_paused(), journal.own_path().exists()) == (True, False)


def test_a_forged_report_about_no_pause_lets_no_journal_begin(sent: Operation) -> None:
    machine = {"machine": journal.own_path().stem}
    detail = {"incident": IncidentKind.JOURNAL_LOST.value, "evidence": machine}
    forge_entry(Action.INCIDENT_RAISED, "operations.pause", "x", detail)
    find_loss()
    assert Incident.objects.get().kind == IncidentKind.JOURNAL_LOST


def test_a_resumption_from_before_the_report_lets_no_journal_begin(
    sent: Operation, preparer: User, approver: User
) -> None:
    pause.pause_payments(actor=preparer, reason="Maintenance of the provider")
    resume(preparer, approver)
    forged = Incident.objects.create(
        pause=Pause.objects.get(),
        kind=IncidentKind.JOURNAL_LOST,
        evidence={"machine": journal.own_path().stem},
        at=timezone.now(),
    )
    find_loss()
    assert Incident.objects.exclude(pk=forged.pk).get().kind == IncidentKind.JOURNAL_LOST


def test_a_new_machine_with_a_copy_of_another_journal_need_not_wait(
    provider: StubProvider, next_one: Operation
) -> None:
    own: Path = journal.own_path()
    own.rename(own.with_name("worker-1--countersign.jsonl"))
    restore_check.forget_positions()
    send.send_operation(next_one.pk)
    assert (len(provider.posts), is_paused(), own.exists()) == (2, False, True)


def test_an_empty_file_is_no_journal(sent: Operation) -> None:
    lose_journal()
    journal.own_path().touch()
    restore_check.compare_with_journals()
    assert is_paused()


def test_a_journal_that_another_process_began_meanwhile_is_not_missing(
    provider: StubProvider, next_one: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, is_missing = lose_journal(), acceptance.is_journal_missing

    def is_missing_and_begun() -> bool:
        journal.own_path().write_bytes(content)
        return is_missing()

    monkeypatch.setattr(acceptance, "is_journal_missing", is_missing_and_begun)
    send.send_operation(next_one.pk)
    assert (len(provider.posts), is_paused()) == (2, False)


def test_not_begun_is_no_proof_without_a_journal(provider: StubProvider, released: Operation) -> None:
    attempt = claimed(released).attempt
    find_loss()
    record_timeout(attempt.pk, now=timezone.now() + timedelta(seconds=30))
    assert status_of(released) == Status.SENDING


def test_the_pages_name_the_machine_and_what_to_do(
    sent: Operation, approver: User, sign_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    find_loss()
    client = sign_in(Client(), approver)
    html = text_of(client.get(Incident.objects.get().get_absolute_url()))
    assert "Ask the operator to bring the journal of this machine back." in html
    assert journal.own_path().stem in html
    assert "A machine has no journal of sent requests." in text_of(client.get("/operations/pause/"))
    assert [one.levelno for one in caplog.records if "There is no journal" in one.getMessage()] == [
        logging.CRITICAL
    ]
