"""Settles an operation whose outcome the service's list did not tell, as two people signed. Never sends."""

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.errors import CannotSettleError
from backoffice.operations.kinds.resolution_payload import End, ResolutionPayload, SeenTransaction, Verdict
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.moves import move
from backoffice.operations.services.recording import bind_transaction, settled
from backoffice.operations.services.watching import first_watch
from backoffice.operations.states import NEEDS_ATTENTION, Outcome, Status

_ENDS = {
    End.SUCCEEDED: (Status.SUCCEEDED, Outcome.SUCCEEDED),
    End.FAILED: (Status.FAILED, Outcome.FAILED),
}


@transaction.atomic
def settle_operation(resolution: Operation, payload: ResolutionPayload, actor: User) -> None:
    """Close the operation and its attempt as signed, in the transaction of the last countersignature.

    Raises CannotSettleError where the outcome is known by now, the transaction is another's by now, or it may still
    happen.
    """
    operation = Operation.objects.get_locked(payload.operation)
    attempt = _attempt_in_question(operation, payload)
    status, attempt.outcome = _end(attempt, payload)
    if payload.transaction is not None:
        _claim(attempt, payload.transaction)
    attempt.closed_at, attempt.next_check_at = clock.now(), None
    attempt.watch_next_at = first_watch(attempt.closed_at)
    attempt.resolution = resolution
    attempt.save()
    move(operation, status, **({"reason": _reason(resolution)} if status == Status.FAILED else {}))
    audit.record(
        Action.OPERATION_RESOLVED,
        actor=actor,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        service_transaction_id=attempt.service_transaction_id,
        resolution=resolution.reference,
        reason=payload.reason,
        status=status,
    )
    settled(attempt)


def _attempt_in_question(operation: Operation, payload: ResolutionPayload) -> Attempt:
    """The attempt that was looked at, if its outcome is still open."""
    attempts = Attempt.objects.select_for_update().filter(operation=operation, closed_at__isnull=True)
    attempt = attempts.filter(number=payload.attempt).first()
    if attempt is None or operation.status not in NEEDS_ATTENTION:
        known = Status(operation.status).label.lower()
        raise CannotSettleError(
            f"{operation.reference} is {known} by now, without this. Nothing was changed."
        )
    return attempt


def _end(attempt: Attempt, payload: ResolutionPayload) -> tuple[Status, Outcome]:
    """How it ended by what was signed."""
    taken = payload.named.transaction_id if payload.named else None
    may_come = clock.now() < attempt.may_come_until or attempt.service_transaction_id != taken
    if payload.verdict == Verdict.ABSENT and may_come:
        raise CannotSettleError(f"{payload.reference} may still be executed. Nothing was changed.")
    return _ENDS[payload.end]


def _claim(attempt: Attempt, seen: SeenTransaction) -> None:
    """Make the transaction this attempt's own; the unique index decides who has it."""
    is_another = attempt.service_transaction_id not in {None, seen.transaction_id}
    if is_another or not bind_transaction(attempt, seen.transaction_id):
        raise CannotSettleError(
            f"Transaction {seen.transaction_id} is another operation's by now, or the service named another one for "
            "this. Nothing was changed."
        )
    attempt.fee = seen.fee


def _reason(resolution: Operation) -> str:
    return f"Settled by {resolution.reference}, which two people signed."
