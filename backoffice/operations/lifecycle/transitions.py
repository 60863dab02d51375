"""Change the status of an operation: `transition`, or `approve_all` for the rows of a batch. Nothing else does.

Also the audit of refused actions.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.db import transaction
from django.db.models import TextChoices

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import background, clock
from backoffice.ledger.mirror import sync
from backoffice.operations import policy
from backoffice.operations.errors import (
    AlteredRecordError,
    MaybeExecutedError,
    OperationError,
    WrongStatusError,
)
from backoffice.operations.kinds.resolution.case import pending_resolution
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import LostAttempt
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import OtpSecret
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import CLOSED, IN_FLIGHT, Status

Parameters = ParamSpec("Parameters")
OperationService = Callable[Concatenate[UUID, Parameters], Operation]
_ENDS_UNSENT = {Status.REJECTED, Status.EXPIRED, Status.CANCELLED}


def transition(operation: Operation, to: Status, **changes: Any) -> None:
    """Change the status of a locked operation along an edge of `states.EDGES`, with the given fields.

    A compare-and-set: if the row has another status by now, nothing is written. A change that the provider
    caused enqueues a sync of the mirror. Raises WrongStatusError, and MaybeExecutedError for what must not end
    as unsent.
    """
    policy.check_transition(operation, to)
    _check_may_end(operation, to)
    if to in CLOSED:
        changes["closed_at"] = clock.now()
    moved = Operation.objects.filter(pk=operation.pk, status=operation.status).update(status=to, **changes)
    if moved != 1:
        raise WrongStatusError
    if operation.status in IN_FLIGHT and to != Status.APPROVED:
        background.enqueue_on_commit(sync.SYNC_TASK, operation.pk)
    if to in _ENDS_UNSENT:
        OtpSecret.objects.filter(operation=operation, state=OtpSecret.State.WAITING).delete()
    operation.status = to
    for name, value in changes.items():
        setattr(operation, name, value)


def _check_may_end(operation: Operation, to: Status) -> None:
    """Raises MaybeExecutedError for what must not end as unsent."""
    if to not in _ENDS_UNSENT:
        return
    if LostAttempt.objects.keeps_open(operation):
        raise MaybeExecutedError
    if operation.status == Status.APPROVED and (pending := pending_resolution(operation)):
        raise MaybeExecutedError(Refusal.RESOLUTION_PENDING, resolution=pending.reference)


def approve_all(operations: Sequence[Operation], *, decided_at: datetime) -> None:
    """Set pending operations to `approved` that the caller has just inserted with their approvals.

    A compare-and-set as in `transition`: raises WrongStatusError unless all of them are still pending.
    """
    for operation in operations:
        policy.check_transition(operation, Status.APPROVED)
    pending = Operation.objects.filter(pk__in=[one.pk for one in operations], status=Status.PENDING)
    if pending.update(status=Status.APPROVED, decided_at=decided_at) != len(operations):
        raise WrongStatusError
    for operation in operations:
        operation.status, operation.decided_at = Status.APPROVED, decided_at


class OperationAction(TextChoices):
    """The action that was refused, as the audit log names it."""

    PREPARE = "prepare"
    APPROVE = "approve"
    APPROVE_AND_RELEASE = "approve_and_release"
    REJECT = "reject"
    CANCEL = "cancel"
    RELEASE = "release"
    SEND = "send"


def audit_refusals(
    attempted: OperationAction,
) -> Callable[[OperationService[Parameters]], OperationService[Parameters]]:
    """Audit a refused action in a transaction of its own, since that of the action is rolled back."""

    def with_audit(service: OperationService[Parameters]) -> OperationService[Parameters]:
        @wraps(service)
        def audited(operation_id: UUID, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Operation:
            try:
                return service(operation_id, *args, **kwargs)
            except OperationError as exc:
                record_refusal(operation_id, attempted, kwargs.get("actor"), exc)
                raise

        return audited

    return with_audit


@transaction.atomic
def record_refusal(
    operation_id: UUID,
    attempted: OperationAction,
    actor: object,
    reason: OperationError,
    notified: Sequence[int] = (),
) -> None:
    """Write to the audit log which action was refused, to whom, and why, and whom to notify besides those concerned.

    Altered rows raise an incident.
    """
    operation = Operation.objects.filter(pk=operation_id).first()
    if operation and isinstance(reason, AlteredRecordError):
        incidents.raise_altered(operation, reason)
    audit.record(
        Action.OPERATION_ACTION_REFUSED,
        actor=actor if isinstance(actor, User) else None,
        target=operation or str(operation_id),
        attempted=attempted,
        refusal=reason.refusal,
        status=operation.status if operation else "",
        **({"notified": list(notified)} if notified else {}),
    )
