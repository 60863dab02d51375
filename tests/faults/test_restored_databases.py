"""The database is restored to an earlier moment while workers run: nothing is sent twice, and payments pause."""

import pytest

from backoffice.accounts.models import User
from backoffice.ledger import provider_list
from backoffice.operations import errors, jobs
from backoffice.operations.delivery import journal
from backoffice.operations.delivery.restore_check import compare_with_journals
from backoffice.operations.models.monitoring import Incident, Pause
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, PauseCause
from backoffice.operations.states import Status
from tests import factories
from tests.backups import backup
from tests.faults.harness import operations
from tests.faults.harness.stage import FaultStage, is_settled
from tests.operations.steps import status_of
from tests.operations.unknown_outcomes import proposed

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]


def assert_sent_once_and_paused(stage: FaultStage, operation: Operation) -> None:
    assert len(stage.provider.ledger()["orders"]) == 1
    assert Pause.objects.get(ended_at=None).cause == PauseCause.DATABASE_RESTORED
    assert not Release.objects.exists()
    incident = Incident.objects.get(kind=IncidentKind.DATABASE_RESTORED)
    assert [one["reference"] for one in incident.evidence["lost"]] == [operation.reference]


def test_a_restore_between_release_and_claim_sends_nothing_again(stage: FaultStage) -> None:
    (operation,) = stage.released("withdrawal")
    before = backup()
    stage.enqueue(operation)
    before.restore()
    assert Release.objects.filter(operation=operation).exists()
    stage.enqueue(operation, operation)
    jobs.send_due()
    assert_sent_once_and_paused(stage, operation)
    compare_with_journals()
    stage.sweep_until(lambda: is_settled(operation), "it is closed by matching")
    assert status_of(operation) == Status.SUCCEEDED
    assert len(stage.provider.ledger()["orders"]) == 1


def test_a_restore_between_approval_and_release_lets_nobody_release_again(stage: FaultStage) -> None:
    operation = operations.approved("withdrawal", stage.preparer, stage.approver)
    before = backup()
    operations.release(operation, stage.approver, stage.provider)
    stage.enqueue(operation)
    before.restore()
    assert status_of(operation) == Status.APPROVED
    operations.release(operation, stage.approver, stage.provider)  # before any process has compared
    stage.enqueue(operation, operation)
    assert_sent_once_and_paused(stage, operation)
    compare_with_journals()
    with pytest.raises(errors.OperationError):
        operations.release(operation, stage.approver, stage.provider)
    stage.sweep_until(lambda: is_settled(operation), "it is closed by matching")
    assert status_of(operation) == Status.SUCCEEDED
    assert len(stage.provider.ledger()["orders"]) == 1


def test_what_was_paid_before_a_restore_without_a_journal_is_resolved_by_two_people(
    stage: FaultStage, second_approver: User
) -> None:
    """Nothing here shows that it was sent; the provider's list does."""
    earlier, operation = stage.released("transfer", "withdrawal")
    stage.enqueue(earlier)
    before = backup()
    stage.enqueue(operation)
    journal.own_path().unlink()
    before.restore()
    compare_with_journals()
    stage.enqueue(operation)
    assert Pause.objects.get(ended_at=None).cause == PauseCause.JOURNAL_LOST
    assert (status_of(operation), operation.attempts.count()) == (Status.APPROVED, 0)
    listed = provider_list.transactions_since(operation.currency, operation.prepared_at).records
    (paid,) = [record for record in listed if record.amount == operation.amount]
    resolution = proposed(operation, stage.approver, "executed", paid.transaction_id)
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(resolution, stage.approver)
    factories.approve(resolution, second_approver)
    assert status_of(operation) == Status.SUCCEEDED
    assert operation.attempts.get().provider_transaction_id == paid.transaction_id
    with pytest.raises(errors.WrongStatusError):
        operations.release(operation, stage.approver, stage.provider)
    stage.enqueue(operation)
    jobs.send_due()
    assert len(stage.provider.ledger()["orders"]) == 2
