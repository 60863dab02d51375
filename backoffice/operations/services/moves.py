"""The one function through which every operation changes its status, and the audit of what was refused."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, queue
from backoffice.ledger import mirroring
from backoffice.operations import policy
from backoffice.operations.errors import OperationAction, OperationError, WrongStatusError
from backoffice.operations.models import Operation
from backoffice.operations.states import CLOSED, SENT, Status

Rest = ParamSpec("Rest")
Service = Callable[Concatenate[UUID, Rest], Operation]


def move(operation: Operation, to: Status, **changes: Any) -> None:
    """Move a locked operation along an edge of the table, together with the given changes.

    A compare-and-set: if the row has another status by now, nothing is written. What the service did is worth a look
    at its list. Raises WrongStatusError.
    """
    policy.check_can_move(operation, to)
    if to in CLOSED:
        changes["closed_at"] = clock.now()
    moved = Operation.objects.filter(pk=operation.pk, status=operation.status).update(status=to, **changes)
    if moved != 1:
        raise WrongStatusError
    if operation.status in SENT and to != Status.APPROVED:
        queue.ring(mirroring.TASK, operation.pk)
    operation.status = to
    for name, value in changes.items():
        setattr(operation, name, value)


def refusals_are_audited(attempted: OperationAction) -> Callable[[Service[Rest]], Service[Rest]]:
    """Record a refused attempt in a transaction of its own, since the refused one is rolled back."""

    def with_audit(service: Service[Rest]) -> Service[Rest]:
        @wraps(service)
        def audited(operation_id: UUID, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Operation:
            try:
                return service(operation_id, *args, **kwargs)
            except OperationError as exc:
                record_refusal(operation_id, attempted, kwargs.get("actor"), exc)
                raise

        return audited

    return with_audit


@transaction.atomic
def record_refusal(
    operation_id: UUID, attempted: OperationAction, actor: object, reason: OperationError
) -> None:
    """Say in the audit log what was refused to whom, and why."""
    operation = Operation.objects.filter(pk=operation_id).first()
    audit.record(
        Action.OPERATION_REFUSED,
        actor=actor if isinstance(actor, User) else None,
        target=operation or str(operation_id),
        attempted=attempted,
        refusal=reason.refusal,
        status=operation.status if operation else "",
    )
