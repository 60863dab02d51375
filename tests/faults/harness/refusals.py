"""Attempts to approve without a second person: refused with the right code, and no money left."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.approval.progress import approval_progress
from backoffice.operations.delivery import send
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.faults.harness import operations
from tests.operations.steps import reloaded
from tests.sandbox_process import SandboxProcess

KIND = "wallet_transfer"
"""The kind of each single payment here."""


def payment(preparer: User) -> Operation:
    """A pending crypto transfer, different from all others."""
    return factories.prepared_of_kind(KIND, operations.payload(KIND), preparer)


def refused_with(code: Refusal, action: Callable[..., object], *args: Any, **kwargs: Any) -> None:
    with pytest.raises(OperationError) as refused:
        action(*args, **kwargs)
    assert refused.value.refusal["code"] == code


def approval_is_refused(code: Refusal, operation: Operation, person: User, sandbox: SandboxProcess) -> None:
    """Approving alone and approving with sending are both refused, with everything given that they need."""
    kind, payload = read_content(operation)
    confirmation = kind.confirmation(payload)
    refused_with(code, factories.approve, operation, person)
    refused_with(
        code,
        approvals.approve_and_release_operation,
        operation.pk,
        actor=person,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=operations.otp_for(operation, sandbox),
        confirmation=approvals.ApproverConfirmation(confirmation.expected if confirmation else ""),
    )


def balances(sandbox: SandboxProcess) -> dict[str, str]:
    """Everything that the merchant has at the provider, by currency."""
    return dict(sandbox.ledger()["balances"])


def assert_nothing_left(
    sandbox: SandboxProcess,
    before: dict[str, str],
    *attempted: Operation,
    status: Status = Status.PENDING,
    counted: int = 0,
) -> None:
    """No balance changed even though a worker tried to send each operation. Each has this status and so many approvals
    that count; there is no release and no attempt.
    """
    for operation in attempted:
        send.send_operation(operation.pk)
        current = reloaded(operation)
        found = sum(len(level.given) for level in approval_progress(current).levels)
        assert (current.status, found) == (status, counted)
    assert balances(sandbox) == before
    assert (Release.objects.count(), Attempt.objects.count()) == (0, 0)
