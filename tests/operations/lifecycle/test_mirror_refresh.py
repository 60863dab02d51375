"""The provider's list is read at once after it has done something for an operation, and not for anything else."""

from datetime import timedelta

import pytest

from backoffice.accounts.models import User
from backoffice.ledger.mirror import sync
from backoffice.ledger.models import Transaction
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.core.test_background import messages
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def enqueued(operation: Operation) -> int:
    """How often a refresh of the mirror was enqueued for this operation."""
    return sum(message["headers"]["task"] == sync.SYNC_TASK for message in messages(operation.pk))


def test_a_mirror_refresh_is_enqueued_when_an_operation_is_sent_and_settled(
    sandbox: SandboxProcess, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "REQUEST_INTERVAL", timedelta(0))
    sync.load_all(lambda _: None)
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver, sandbox.totp())
    assert enqueued(operation) == 0
    send.send_operation(operation.pk)
    assert enqueued(operation) == 1
    confirmation.confirm_operation(operation.pk)
    assert Operation.objects.get().status == Status.SUCCEEDED
    assert enqueued(operation) == 2
    sync.sync_now()
    ours = Transaction.objects.get(transaction_id=Attempt.objects.get().provider_transaction_id)
    assert (ours.amount, ours.direction, ours.status) == (operation.amount, "out", "fulfilled")


def test_no_mirror_refresh_is_enqueued_for_unsent_operations(preparer: User) -> None:
    operation = factories.prepared(preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    assert Operation.objects.get().status == Status.CANCELLED
    assert enqueued(operation) == 0
