"""What two people accepted is taken from the journal; checkpoints that contradict the log; orders that are dropped."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.checkpoints import deliver_checkpoints_due
from backoffice.audit.models import CheckpointDestination
from backoffice.core import clock
from backoffice.operations.delivery import journal, restore_check, send
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Incident, Pause, is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, IncidentKind, PauseCause
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow.bulk_release import start_bulk_release
from tests import factories
from tests.audit.conftest import KEYS
from tests.backups import backup
from tests.operations.delivery.test_restored_database import lines, resume
from tests.operations.provider_list import NAMELESS, shows
from tests.operations.steps import status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lost(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A withdrawal that was sent, in a database restored to when it was released; two people ended a pause before."""
    shows(provider)
    provider.answer_post = lambda: NAMELESS
    pause.pause_payments(actor=preparer, reason="Maintenance of the provider")
    resume(preparer, approver)
    operation = factories.release(factories.approved(preparer, approver), approver)
    before = backup()
    send.send_operation(operation.pk)
    before.restore()
    return operation


def forged_incident(of: Pause) -> Incident:
    """As someone with the database inserts it, to have all lines of the journal skipped."""
    path = journal.own_path()
    key = f"{path.stem}:{journal.first_line(path)['id']}"
    evidence = {"machine": "payments-1", "journals": [{"journal": key, "until": path.stat().st_size}]}
    return Incident.objects.create(
        pause=of, kind=IncidentKind.DATABASE_RESTORED, evidence=evidence, at=timezone.now()
    )


def test_a_forged_incident_hides_no_line(provider: StubProvider, lost: Operation) -> None:
    forged_incident(Pause.objects.get())
    restore_check.forget_positions()
    send.send_operation(lost.pk)
    assert (len(provider.posts), is_paused()) == (1, True)


def test_a_forged_incident_hides_nothing_that_a_process_saw(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    pause.pause_payments(actor=preparer, reason="Maintenance of the provider")
    resume(preparer, approver)
    operation = factories.approved(preparer, approver)
    before = backup()
    restore_check.compare_with_journals()
    factories.release(operation, approver)
    restore_check.compare_with_journals()  # has seen the entry, which is not in the journal yet
    before.restore(while_running=True)
    forged_incident(Pause.objects.get())
    assert restore_check.compare_with_journals() == 1
    assert is_paused()


def test_a_forged_incident_of_a_pause_in_effect_hides_nothing_after_it(
    lost: Operation, preparer: User, approver: User
) -> None:
    pause.pause_payments(actor=preparer, reason="Another reason")
    forged_incident(Pause.objects.get(ended_at=None))
    restore_check.compare_with_journals()
    resume(preparer, approver)
    restore_check.compare_with_journals()
    assert is_paused()


def test_what_was_reported_is_in_the_journal_with_its_pause(
    lost: Operation, preparer: User, approver: User
) -> None:
    restore_check.compare_with_journals()
    (line,) = lines("reported")
    current = Pause.objects.get(ended_at=None)
    assert (line["pause"], line["paused_at"]) == (current.pk, current.paused_at.isoformat())
    resume(preparer, approver)
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert not is_paused()
    assert Incident.objects.count() == 1


def test_a_report_that_was_not_written_is_made_again_after_the_pause(
    lost: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def refuse(*_: object) -> None:
            raise journal.JournalError(Blocker.JOURNAL_UNWRITABLE, error="No space left on device")

        patched.setattr(journal, "write_reported", refuse)
        for _ in range(2):
            restore_check.compare_with_journals()
    assert Incident.objects.count() == 1
    resume(preparer, approver)
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert is_paused()


def test_a_report_is_not_accepted_by_a_resumption_that_was_proposed_before(
    lost: Operation, preparer: User, approver: User
) -> None:
    """The incident that makes such a resumption fail can be deleted by someone with the database."""
    restore_check.compare_with_journals()
    path = journal.own_path()
    line = lines("reported")[0]
    resume(preparer, approver)
    later = (clock.now() + timedelta(hours=1)).isoformat()
    path.write_text(path.read_text().replace(f'"at":"{line["at"]}"', f'"at":"{later}"'))
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert is_paused()


def test_pending_orders_are_dropped_with_the_releases(
    lost: Operation, preparer: User, approver: User
) -> None:
    others = [factories.approved(preparer, approver, amount=Decimal(n)) for n in (70, 80)]
    start_bulk_release(uuid4(), others, actor=approver, second_factor_at=timezone.now())
    assert BulkRelease.objects.filter(is_pending=True).exists()
    restore_check.compare_with_journals()
    assert not BulkRelease.objects.filter(is_pending=True).exists()
    assert not Release.objects.exists()


def test_what_the_provider_executed_is_not_sent_again_whatever_the_database_says(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    shows(provider)
    provider.answer_post = lambda: (400, '{"message": "Invalid token"}')
    send.send_operation(released.pk)
    attempt = Attempt.objects.get()
    assert (status_of(released), attempt.outcome) == (Status.APPROVED, Outcome.OTP_REJECTED)
    journal.write_answered(attempt, Outcome.SUCCEEDED, "T-1")
    for is_restarted in (False, True):
        if is_restarted:
            restore_check.forget_positions()
        factories.release(released, approver)
        send.send_operation(released.pk)
        assert (len(provider.posts), Release.objects.exists()) == (1, False)
    assert not is_paused()


# Checkpoints


@pytest.fixture
def checkpoint_file(tmp_path: Path, settings: Settings) -> Path:
    file = tmp_path / "checkpoints.jsonl"
    settings.AUDIT_CHECKPOINT_KEYS = KEYS
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [f"file://{file}"]
    return file


def after(minutes: float) -> int:
    with clock.use_clock(lambda: timezone.now() + timedelta(minutes=minutes)):
        return deliver_checkpoints_due()


@pytest.fixture
def contradicted(provider: StubProvider, preparer: User, approver: User, checkpoint_file: Path) -> Operation:
    """A released withdrawal in a database that was restored together with the journal; the checkpoint is later."""
    shows(provider)
    before = backup()
    factories.prepared(preparer)
    assert after(0) == 1
    before.restore()
    operation = factories.approved(preparer, approver)
    assert after(2) == 0
    return factories.release(operation, approver)


def test_a_checkpoint_that_contradicts_the_log_pauses_payments(
    provider: StubProvider, contradicted: Operation, checkpoint_file: Path
) -> None:
    send.send_operation(contradicted.pk)
    assert (provider.posts, Release.objects.exists()) == ([], False)
    assert Pause.objects.get().cause == PauseCause.DATABASE_RESTORED
    assert Incident.objects.get().evidence["destinations"] == [f"file://{checkpoint_file}"]
    restore_check.forget_positions()
    assert restore_check.compare_with_journals() == 0
    assert Incident.objects.count() == 1


def test_two_people_accept_a_checkpoint_that_contradicts_the_log(
    provider: StubProvider, contradicted: Operation, preparer: User, approver: User, tmp_path: Path
) -> None:
    restore_check.compare_with_journals()
    resume(preparer, approver)
    factories.release(contradicted, approver)
    send.send_operation(contradicted.pk)
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    assert (len(provider.posts), is_paused()) == (1, False)


def test_another_machine_with_the_same_finding_raises_no_second_incident(
    contradicted: Operation, preparer: User, approver: User, settings: Settings, tmp_path: Path
) -> None:
    restore_check.compare_with_journals()
    settings.JOURNAL_DIR = tmp_path / "other-machine"
    settings.JOURNAL_DIR.mkdir()
    restore_check.forget_positions()
    restore_check.compare_with_journals()
    resume(preparer, approver)
    restore_check.compare_with_journals()
    assert (is_paused(), Incident.objects.count()) == (False, 1)


def test_a_destination_that_lost_its_checkpoints_pauses_nothing(
    released: Operation, checkpoint_file: Path
) -> None:
    after(0)
    checkpoint_file.write_text("")
    after(2)
    assert CheckpointDestination.objects.get().fault["code"] == "checkpoint_lost"
    restore_check.compare_with_journals()
    assert not is_paused()
