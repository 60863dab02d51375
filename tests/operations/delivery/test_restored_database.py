"""A database restored to an earlier moment is detected, pauses payments, and never has anything sent twice."""

import json
import re
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.delivery import journal, restore_check, send
from backoffice.operations.delivery.record import record_timeout
from backoffice.operations.jobs import expire_due
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import incidents, pause
from backoffice.operations.models.monitoring import Incident, LostAttempt, Pause, is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, IncidentKind, PauseCause
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import prepare
from tests import factories
from tests.append_only.triggers import lifted
from tests.backups import backup
from tests.operations.forgeries import make_unreadable
from tests.operations.provider_list import NAMED, NAMELESS, REFUSED, shows
from tests.operations.steps import let_pass, put, show, status_of, text_of
from tests.operations.unknown_outcomes import record
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]


def resume(person: User, other: User) -> None:
    form = KINDS["resume"].form_type({"reason": "Compared with the provider"})
    assert form.is_valid(), form.errors
    proposal = prepare.prepare_operation(uuid.uuid4(), actor=person, kind="resume", payload=form.payload())
    factories.approve(proposal, other)


def sent_and_pending_again(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A withdrawal that was sent, in a database restored to before its approval; the finding is reported."""
    shows(provider)
    operation = factories.prepared(preparer)
    before = backup()
    factories.release(factories.approve(operation, approver), approver)
    send.send_operation(operation.pk)
    before.restore()
    restore_check.compare_with_journals()
    return operation


def lines(kind: str) -> list[Any]:
    found = [json.loads(text) for text in journal.own_path().read_text().splitlines()]
    return [line for line in found if line["line"] == kind]


@pytest.fixture
def lost(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A withdrawal that was released, backed up, sent, and is released again in the restored database."""
    restore_check.compare_with_journals()  # begins the journal, as a worker does when it starts
    shows(provider)
    provider.answer_post = lambda: NAMELESS
    operation = factories.release(factories.approved(preparer, approver), approver)
    before = backup()
    send.send_operation(operation.pk)
    assert len(provider.posts) == 1
    before.restore()
    assert Release.objects.filter(operation=operation).exists()
    return operation


def test_a_payment_sent_after_the_backup_is_not_sent_again(provider: StubProvider, lost: Operation) -> None:
    send.send_operation(lost.pk)
    assert len(provider.posts) == 1
    assert Pause.objects.get().cause == PauseCause.DATABASE_RESTORED
    assert not Release.objects.exists()
    incident = Incident.objects.get(kind=IncidentKind.DATABASE_RESTORED)
    assert [one["reference"] for one in incident.evidence["lost"]] == [lost.reference]
    entries = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED)
    assert entries.latest("position").detail["refusal"] == {"code": "database_restored"}
    assert not Entry.objects.filter(action=Action.OPERATION_CLAIMED).exists()


def test_it_is_found_by_the_journal_without_the_audit_log(provider: StubProvider, lost: Operation) -> None:
    path = journal.own_path()
    path.write_text(re.sub(r'"position":\d+', '"position":0', path.read_text()))
    send.send_operation(lost.pk)
    assert (len(provider.posts), is_paused()) == (1, True)
    assert "log_position" not in Incident.objects.get().evidence


def test_it_is_found_by_the_audit_log_without_an_attempt(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    before = backup()
    factories.release(operation, approver)
    restore_check.compare_with_journals()
    before.restore()
    assert restore_check.compare_with_journals() == 1
    evidence = Incident.objects.get().evidence
    assert (is_paused(), "lost" in evidence, evidence["log_position"] > 0) == (True, False, True)


def test_another_server_timeline_or_database_is_found(released: Operation) -> None:
    restore_check.compare_with_journals()
    path = journal.own_path()
    path.write_text(path.read_text().replace(f'"identity":"{journal.identity()}"', '"identity":"before"'))
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert is_paused()
    assert not Release.objects.exists()
    assert Incident.objects.get().evidence["database"] == f"before → {journal.identity()}"


def test_a_restore_is_found_while_a_process_runs(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    shows(provider)
    operation = factories.release(factories.approved(preparer, approver), approver)
    before = backup()
    send.send_operation(operation.pk)
    restore_check.compare_with_journals()  # has read all lines
    before.restore(while_running=True)
    send.send_operation(operation.pk)
    assert (len(provider.posts), is_paused()) == (1, True)


def test_what_was_sent_is_closed_by_matching(provider: StubProvider, lost: Operation) -> None:
    assert restore_check.compare_with_journals() == 2  # found, and made again
    attempt = Attempt.objects.get(operation=lost)
    assert (status_of(lost), attempt.outcome, attempt.number) == (Status.UNKNOWN, Outcome.OPEN, 1)
    assert LostAttempt.objects.get().attempt == attempt
    shows(provider, record("T-1"))
    let_pass(timedelta(minutes=3))
    confirmation.confirm_operation(lost.pk)
    attempt.refresh_from_db()
    assert (status_of(lost), attempt.provider_transaction_id) == (Status.SUCCEEDED, "T-1")
    assert len(provider.posts) == 1
    assert not set(inspect(full=True).violations) & {
        "unrecorded_transition",
        "inconsistent_status",
        "sent_again",
    }


class BackupAt(dict[str, str]):
    """In place of the fault points: makes a backup when this one is reached."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self.point, self.backup = point, backup()

    def get(self, name: str, default: Any = None) -> Any:
        if name == self.point:
            self.backup = backup()
        return default


@pytest.mark.parametrize("returned_first", [False, True])
def test_a_restore_between_the_claim_and_the_beginning_is_found(
    provider: StubProvider, released: Operation, settings: Settings, returned_first: bool
) -> None:
    """Such an attempt must not be taken for one whose request never began."""
    settings.FAULT_POINTS = before = BackupAt("send.claimed")
    send.send_operation(released.pk)
    before.backup.restore()
    assert (status_of(released), Attempt.objects.get().begun_at) == (Status.SENDING, None)
    if returned_first:
        Attempt.objects.update(begin_by=timezone.now() - timedelta(hours=1))
        record_timeout(Attempt.objects.get().pk, now=timezone.now())  # by a process that compares nothing
        assert status_of(released) == Status.APPROVED
    restore_check.compare_with_journals()
    assert is_paused()
    assert LostAttempt.objects.get().attempt is not None
    let_pass(timedelta(hours=1))
    Attempt.objects.filter(closed_at=None).update(deadline_at=timezone.now() - timedelta(minutes=5))
    expire_due()
    assert status_of(released) == Status.UNKNOWN
    assert len(provider.posts) == 1


class RestoreAt(dict[str, str]):
    """In place of the fault points: does this once when the point is first reached."""

    def __init__(self, point: str, do: Callable[[], object]) -> None:
        super().__init__()
        self.point, self.do = point, do

    def get(self, name: str, default: Any = None) -> Any:
        if name == self.point:
            self.point = ""
            self.do()
        return default


def test_a_restore_between_the_comparison_and_the_claim_is_found(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    """Another process sent it, and the database lost that, while this one read the provider's list."""
    shows(provider)
    before = backup()

    def is_sent_elsewhere_and_lost() -> None:
        send.send_operation(released.pk)
        before.restore(while_running=True)

    settings.FAULT_POINTS = RestoreAt("send.before_claim", is_sent_elsewhere_and_lost)
    send.send_operation(released.pk)
    assert (len(provider.posts), is_paused()) == (1, True)
    attempt = Attempt.objects.get()
    assert "The database was restored before sending began. Nothing was sent." in attempt.response


def by_another_process(do: Callable[[], object]) -> None:
    """Do this as a process that has compared nothing yet."""
    mine = dict(vars(restore_check._memory))
    restore_check.forget_positions()
    do()
    vars(restore_check._memory).update(mine)


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize("point", ["send.claimed", "send.before_request", "send.connected"])
def test_a_restore_that_another_process_reported_before_the_first_byte_stops_the_request(
    provider: StubProvider,
    released: Operation,
    settings: Settings,
    preparer: User,
    approver: User,
    point: str,
    is_resumed: bool,
) -> None:
    shows(provider)
    before = backup()

    def is_reported() -> None:
        by_another_process(restore_check.compare_with_journals)
        if is_resumed:
            resume(preparer, approver)

    def is_sent_elsewhere_and_lost() -> None:
        send.send_operation(released.pk)
        before.restore(while_running=True)
        settings.FAULT_POINTS = RestoreAt(point, is_reported)

    restore_check.compare_with_journals()
    settings.FAULT_POINTS = RestoreAt("send.before_claim", is_sent_elsewhere_and_lost)
    send.send_operation(released.pk)
    assert (len(provider.posts), is_paused()) == (1, not is_resumed)


@pytest.mark.parametrize(
    "forge", ["UPDATE operations_lostattempt SET outcome = 'not_sent'", "DELETE FROM operations_lostattempt"]
)
def test_someone_with_the_database_cannot_have_a_lost_payment_sent_again(
    provider: StubProvider, preparer: User, approver: User, forge: str
) -> None:
    operation = sent_and_pending_again(provider, preparer, approver)
    resume(preparer, approver)
    with connection.cursor() as cursor:
        cursor.execute(forge)
    factories.release(factories.approve(operation, approver), approver)
    send.send_operation(operation.pk)
    assert len(provider.posts) == 1
    assert Entry.objects.get(action=Action.OPERATION_ATTEMPT_LOST).target_id == str(operation.pk)


def test_payments_that_are_paused_before_the_first_byte_are_not_sent(
    provider: StubProvider, released: Operation, settings: Settings, preparer: User
) -> None:
    shows(provider)
    settings.FAULT_POINTS = RestoreAt(
        "send.connected", lambda: pause.pause_payments(actor=preparer, reason="Fraud is suspected.")
    )
    send.send_operation(released.pk)
    assert provider.posts == []
    assert "Payments were paused before sending began." in Attempt.objects.get().response
    assert status_of(released) == Status.APPROVED


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_pause_does_not_end_while_a_finding_is_read(
    lost: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause.pause_payments(actor=preparer, reason="Maintenance of the provider")
    form = KINDS["resume"].form_type({"reason": "Maintenance is over"})
    assert form.is_valid(), form.errors
    proposal = prepare.prepare_operation(uuid.uuid4(), actor=preparer, kind="resume", payload=form.payload())
    find, refusals = restore_check._find, []

    def approve() -> None:
        try:
            factories.approve(proposal, approver)
        except errors.OperationError as exc:
            refusals.append(exc)
        finally:
            connection.close()

    thread = threading.Thread(target=approve)

    def find_slowly(*given: Any) -> Any:
        thread.start()
        thread.join(0.5)
        return find(*given)

    monkeypatch.setattr(restore_check, "_find", find_slowly)
    restore_check.compare_with_journals()
    thread.join(10)
    assert Incident.objects.get().kind == IncidentKind.DATABASE_RESTORED
    assert (is_paused(), [type(refusal) for refusal in refusals]) == (True, [errors.PauseChangedError])


def test_the_incident_of_another_pause_does_not_hide_what_a_process_saw(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    before = backup()
    factories.release(operation, approver)
    restore_check.compare_with_journals()
    journal.own_path().unlink()
    vars(restore_check._memory)["positions"].clear()
    before.restore(while_running=True)
    with transaction.atomic():
        current = pause.pause_because_of(PauseCause.ALTERED_PAUSE)
        incidents.raise_for_pause(current, evidence={"pause": "7"}, kind=IncidentKind.ALTERED_PAUSE)
    restore_check.compare_with_journals()
    assert Incident.objects.filter(kind=IncidentKind.DATABASE_RESTORED).count() == 1


def test_not_begun_is_no_proof_in_a_database_that_lost_commits(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    """The machine that sent it is down, and its journal with it: only the timeline shows the promotion."""
    settings.FAULT_POINTS = before = BackupAt("send.claimed")
    send.send_operation(released.pk)
    before.backup.restore()
    first = journal.own_path().read_text().splitlines()[0]
    former = first.replace(f'"identity":"{journal.identity()}"', '"identity":"before"')
    journal.own_path().write_text(f"{former}\n")
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    Attempt.objects.update(begin_by=timezone.now() - timedelta(hours=1))
    expire_due()
    assert (is_paused(), status_of(released)) == (True, Status.SENDING)
    Attempt.objects.update(deadline_at=timezone.now() - timedelta(hours=1))
    expire_due()
    assert status_of(released) == Status.UNKNOWN


def test_a_resumption_that_was_proposed_before_the_finding_is_refused(
    lost: Operation, preparer: User, approver: User
) -> None:
    pause.pause_payments(actor=preparer, reason="Maintenance of the provider")
    form = KINDS["resume"].form_type({"reason": "Maintenance is over"})
    assert form.is_valid(), form.errors
    proposal = prepare.prepare_operation(uuid.uuid4(), actor=preparer, kind="resume", payload=form.payload())
    restore_check.compare_with_journals()
    with pytest.raises(errors.PauseChangedError):
        factories.approve(proposal, approver)
    assert is_paused()


def test_a_finding_lists_what_was_lost_before_the_newest_lines(
    lost: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "NEWEST_BYTES", 100)
    journal.write_database(journal.database_line())
    position = Entry.objects.count() + 5
    with journal.own_path().open("a") as file:
        file.write(json.dumps({"line": "database", "position": position, "hash": "lost"}) + "\n")
    restore_check.compare_with_journals()
    assert [found.operation_id for found in LostAttempt.objects.all()] == [lost.pk]


def test_a_journal_that_was_cut_is_compared_from_its_beginning(
    lost: Operation, preparer: User, approver: User
) -> None:
    """Two people accepted what was in it up to a place that it does not reach any more."""
    claimed = lines("claimed")[0]
    name = journal.own_path().name.partition("--")[2]
    cut = journal.own_path().rename(journal.own_path().with_name(f"former-machine--{name}"))
    restore_check.compare_with_journals()
    resume(preparer, approver)
    assert not is_paused()
    now = timezone.now().isoformat()
    claimed |= {"number": 9, "started_at": now, "begun_at": now}
    first = cut.read_text().splitlines()[0]
    size = cut.stat().st_size
    cut.write_text(f"{first}\n{json.dumps(claimed)}\n")
    assert cut.stat().st_size < size
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert is_paused()
    assert LostAttempt.objects.filter(number=9).exists()


def test_a_folder_that_cannot_be_read_sends_nothing(
    provider: StubProvider, released: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_attempt: int, _database: object) -> None:
        raise PermissionError

    monkeypatch.setattr(journal, "write_claimed", refuse)
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])


def test_the_transaction_in_the_response_is_taken_from_the_journal(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: NAMED
    operation = factories.release(factories.approved(preparer, approver), approver)
    before = backup()
    send.send_operation(operation.pk)
    before.restore()
    restore_check.compare_with_journals()
    restore_check.compare_with_journals()
    assert Attempt.objects.get(operation=operation).provider_transaction_id == "T-1"


def test_an_attempt_waits_until_its_balance_has_no_other_unmatched_attempt(
    provider: StubProvider, lost: Operation, preparer: User, approver: User
) -> None:
    other = put(factories.approved(preparer, approver), Status.SENDING, Status.UNKNOWN)
    attempt = factories.attempt(other, balance="NGN")
    restore_check.compare_with_journals()
    assert restore_check.compare_with_journals() == 0
    assert status_of(lost) == Status.APPROVED
    Attempt.objects.filter(pk=attempt.pk).update(provider_transaction_id="T-OTHER")
    assert restore_check.compare_with_journals() == 1
    assert status_of(lost) == Status.UNKNOWN


def test_what_was_sent_is_not_sent_after_payments_are_resumed(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent_and_pending_again(provider, preparer, approver)
    assert status_of(operation) == Status.PENDING
    resume(preparer, approver)
    factories.release(factories.approve(operation, approver), approver)
    send.send_operation(operation.pk)
    assert (len(provider.posts), status_of(operation)) == (1, Status.APPROVED)
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position")
    assert refused.detail["refusal"] == {"code": "sent_before_restore"}


def test_what_was_provably_not_executed_may_be_sent_again(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: (400, '{"message": "Invalid token"}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    before = backup()
    send.send_operation(operation.pk)
    assert status_of(operation) == Status.APPROVED
    before.restore()
    restore_check.compare_with_journals()
    resume(preparer, approver)
    assert restore_check.compare_with_journals() == 0
    factories.release(operation, approver)
    send.send_operation(operation.pk)
    assert len(provider.posts) == 2


def test_a_rejected_attempt_is_not_sent_again(provider: StubProvider, preparer: User, approver: User) -> None:
    provider.answer_post = lambda: REFUSED
    operation = factories.release(factories.approved(preparer, approver), approver)
    before = backup()
    send.send_operation(operation.pk)
    before.restore()
    send.send_operation(operation.pk)
    assert (len(provider.posts), is_paused()) == (1, True)


def test_two_people_accept_what_was_found(
    provider: StubProvider, lost: Operation, preparer: User, approver: User
) -> None:
    restore_check.compare_with_journals()
    resume(preparer, approver)
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert not is_paused()
    Attempt.objects.update(provider_transaction_id="T-1")
    factories.release(further := factories.approved(preparer, approver, amount=Decimal(70)), approver)
    send.send_operation(further.pk)
    assert len(provider.posts) == 2
    assert not is_paused()


def test_a_second_restore_to_before_the_acceptance_is_found_again(
    provider: StubProvider, lost: Operation, preparer: User, approver: User
) -> None:
    before = backup()
    restore_check.compare_with_journals()
    resume(preparer, approver)
    before.restore()
    send.send_operation(lost.pk)
    assert (len(provider.posts), is_paused()) == (1, True)


def test_a_finding_of_another_journal_accepts_nothing(
    provider: StubProvider, lost: Operation, preparer: User, approver: User
) -> None:
    path = journal.own_path()
    name = path.name.partition("--")[2]
    copy = path.read_text()
    path.rename(path.with_name(f"former-machine--{name}"))
    restore_check.compare_with_journals()
    resume(preparer, approver)
    assert not is_paused()
    path.with_name(f"other-machine--{name}").write_text(copy.replace('"id":"', '"id":"other'))
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert is_paused()


def test_another_pause_does_not_hide_it(lost: Operation, preparer: User) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    restore_check.compare_with_journals()
    assert Incident.objects.get().pause == Pause.objects.get()
    assert not Release.objects.exists()


@pytest.mark.parametrize("evidence", [[], {"journals": [5]}, {"journals": 5}, {"destinations": [{}]}])
def test_an_unreadable_incident_of_the_pause_does_not_hide_it(
    lost: Operation, preparer: User, evidence: object
) -> None:
    current = pause.pause_payments(actor=preparer, reason="A key has leaked")
    kind = IncidentKind.DATABASE_RESTORED
    Incident.objects.create(pause=current, kind=kind, evidence=evidence, at=timezone.now())
    restore_check.compare_with_journals()
    assert Incident.objects.latest("pk").evidence["lost"]
    assert not Release.objects.exists()


def test_a_release_that_cannot_be_checked_does_not_hide_it(
    lost: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The release of the lost attempt also ends when that attempt is recreated; this one ends by the finding alone.
    factories.release(factories.approved(preparer, approver, amount="61.00"), approver)

    def fail(*_args: object) -> bool:
        raise KeyError("payload")

    monkeypatch.setattr(restore_check, "withdraw_release", fail)
    restore_check.compare_with_journals()
    assert is_paused()
    assert Incident.objects.get().kind == IncidentKind.DATABASE_RESTORED
    assert not Release.objects.exists()


def test_a_release_that_cannot_be_read_is_deleted_with_an_entry(
    lost: Operation, preparer: User, approver: User
) -> None:
    other = factories.release(factories.approved(preparer, approver, amount="61.00"), approver)
    for release in Release.objects.all():
        make_unreadable(release, "look_alikes")
    restore_check.compare_with_journals()
    assert is_paused()
    assert Incident.objects.get().kind == IncidentKind.DATABASE_RESTORED
    assert not Release.objects.exists()
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED)
    assert {entry.target_id for entry in refused} == {str(lost.pk), str(other.pk)}
    assert refused.get(target_id=str(other.pk)).detail == {
        "attempted": "send",
        "refusal": {"code": "database_restored"},
        "status": "approved",
        "notified": [approver.pk],
        "not_checked": "ValueError",
    }


def test_a_release_of_unreadable_content_is_deleted_with_an_entry(
    lost: Operation, preparer: User, approver: User
) -> None:
    other = factories.release(factories.approved(preparer, approver, amount="61.00"), approver)
    for one in (lost, other):
        make_unreadable(one)
    restore_check.compare_with_journals()
    assert is_paused()
    assert Incident.objects.filter(kind=IncidentKind.DATABASE_RESTORED).count() == 1
    altered = Incident.objects.filter(kind=IncidentKind.ALTERED_RECORD)
    assert {incident.operation for incident in altered} == {lost, other}
    assert not Release.objects.exists()
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED)
    assert {entry.target_id for entry in refused} == {str(lost.pk), str(other.pk)}
    entry = refused.get(target_id=str(other.pk))
    assert (entry.target_type, entry.target_label) == ("operations.operation", str(other))
    assert entry.detail == {
        "attempted": "send",
        "refusal": {"code": "log_mismatch"},
        "status": "approved",
        "notified": [approver.pk],
    }


@pytest.mark.parametrize("payload", [5, []])
def test_a_payload_that_is_no_object_does_not_hide_it(lost: Operation, payload: object) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=lost.pk).update(payload=payload)
    restore_check.compare_with_journals()
    assert is_paused()
    kinds = set(Incident.objects.values_list("kind", flat=True))
    assert kinds == {IncidentKind.DATABASE_RESTORED, IncidentKind.ALTERED_RECORD}
    assert not Release.objects.exists()


def test_a_finding_is_reported_once(lost: Operation) -> None:
    for _ in range(3):
        restore_check.forget_positions()
        restore_check.compare_with_journals()
    assert Incident.objects.filter(kind=IncidentKind.DATABASE_RESTORED).count() == 1


def test_an_operation_that_is_gone_is_listed(
    provider: StubProvider, preparer: User, approver: User, sign_in: SignIn
) -> None:
    before = backup()
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    before.restore()
    restore_check.compare_with_journals()
    incident = Incident.objects.get()
    assert LostAttempt.objects.get().operation_id == operation.pk
    html = text_of(sign_in(Client(), approver).get(incident.get_absolute_url()))
    assert f"{operation.reference}</span> · Attempt 1" in html
    assert "250,000.00" in html


def test_nothing_is_sent_without_a_journal(
    provider: StubProvider, released: Operation, settings: Settings, tmp_path: Path
) -> None:
    settings.JOURNAL_DIR = tmp_path / "volume-that-is-not-mounted"
    send.send_operation(released.pk)
    assert provider.posts == []
    assert not Attempt.objects.exists()
    assert Release.objects.get().blocker == Blocker.JOURNAL_UNREADABLE


def test_the_line_is_written_before_the_request(provider: StubProvider, released: Operation) -> None:
    written: list[int] = []

    def answer() -> tuple[int, str]:
        written.append(len(lines("claimed")))
        return NAMELESS

    provider.answer_post = answer
    send.send_operation(released.pk)
    assert written == [1]
    assert len(lines("answered")) == 1


def test_a_journal_holds_neither_secrets_nor_recipients(provider: StubProvider, released: Operation) -> None:
    send.send_operation(released.pk)
    text = journal.own_path().read_text()
    assert released.reference in text
    for hidden in ("123456", "0123456789", "OBI", "Obi", "Access Bank"):
        assert hidden not in text
    assert journal.own_path().stat().st_mode & 0o077 == 0


def test_a_line_that_was_cut_short_is_skipped(provider: StubProvider, released: Operation) -> None:
    restore_check.compare_with_journals()
    with journal.own_path().open("a") as file:
        file.write('{"line":"claimed","operation":"')
    restore_check.forget_positions()
    send.send_operation(released.pk)
    assert (len(provider.posts), is_paused()) == (1, False)


def test_a_journal_of_another_host_name_is_compared(provider: StubProvider, lost: Operation) -> None:
    name = journal.own_path().name.partition("--")[2]
    journal.own_path().rename(journal.own_path().with_name(f"former-machine--{name}"))
    send.send_operation(lost.pk)
    assert (len(provider.posts), is_paused()) == (1, True)
    assert Incident.objects.get().evidence["machine"] == "former-machine"


def test_the_pages_name_the_cause_and_what_the_journal_has(
    lost: Operation, approver: User, sign_in: SignIn
) -> None:
    restore_check.compare_with_journals()
    client = sign_in(Client(), approver)
    html = text_of(client.get("/operations/pause/"))
    assert "by Countersign" in html
    assert "The database was restored to an earlier point in time" in html
    assert "according to the journal of" in text_of(show(client, lost))


def test_the_releaser_is_refused_while_payments_are_paused(lost: Operation, approver: User) -> None:
    restore_check.compare_with_journals()
    with pytest.raises((errors.PaymentsPausedError, errors.WrongStatusError)):
        factories.release(lost, approver)


def test_a_folder_beside_the_database_or_a_missing_one_is_reported(
    settings: Settings, tmp_path: Path, sign_in: SignIn, auditor: User
) -> None:
    beside = "in the database folder"
    if connection.vendor == "sqlite":
        settings.JOURNAL_DIR = Path(str(connection.settings_dict["NAME"])).parent
        assert [beside in str(warning) for warning in journal.check_folder()] == [True]
        assert beside in text_of(sign_in(Client(), auditor).get("/settings/system/"))
    settings.JOURNAL_DIR = tmp_path / "missing"
    assert ["does not exist" in str(warning) for warning in journal.check_folder()] == [True]
    settings.JOURNAL_DIR = tmp_path
    assert list(journal.check_folder()) == []
