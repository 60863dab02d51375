"""Settles an operation whose outcome the service's list did not tell, as two people signed. Never sends."""

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.ledger import selectors as ledger
from backoffice.operations.errors import CannotSettleError, Refusal
from backoffice.operations.kinds.resolution_case import may_be_settled, open_case
from backoffice.operations.kinds.resolution_payload import (
    End,
    ResolutionChoice,
    ResolutionPayload,
    SeenTransaction,
)
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.moves import move
from backoffice.operations.services.recording import bind_transaction, settled
from backoffice.operations.services.watching import first_watch
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError

_ENDS = {
    End.SUCCEEDED: (Status.SUCCEEDED, Outcome.SUCCEEDED),
    End.FAILED: (Status.FAILED, Outcome.FAILED),
}


def check_meaning(payload: ResolutionPayload) -> None:
    """Hold what people say of the service's word against the word it shows now. Asks it, so outside of transactions.

    Raises CannotSettleError where the word has changed, or cannot be read.
    """
    _, attempt = open_case(payload.operation)
    seen = payload.transaction
    if attempt is None or seen is None or payload.meaning is None:
        return
    try:
        listed = ledger.transactions_since(attempt.operation.currency, attempt.sought_from)
    except GatewayError as exc:
        raise CannotSettleError(Refusal.LIST_UNREADABLE, error=str(exc)) from exc
    words = {record.transaction_id: record.status for record in listed.records}
    if words.get(seen.transaction_id) != seen.status:
        raise CannotSettleError(Refusal.RECORD_CHANGED, transaction=seen.transaction_id, word=seen.word)


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
    if attempt is None or not may_be_settled(operation, attempt):
        known = {"reference": operation.reference, "status": operation.status}
        raise CannotSettleError(Refusal.SETTLED_MEANWHILE, **known)
    return attempt


def _end(attempt: Attempt, payload: ResolutionPayload) -> tuple[Status, Outcome]:
    """How it ended by what was signed. Nothing fails while ours may come: what failed may be another's."""
    taken = payload.named.transaction_id if payload.named else None
    is_news = payload.verdict == ResolutionChoice.ABSENT and attempt.service_transaction_id != taken
    if payload.end == End.FAILED and (clock.now() < attempt.may_come_until or is_news):
        raise CannotSettleError(Refusal.MAY_STILL_BE_EXECUTED, reference=payload.reference)
    return _ENDS[payload.end]


def _claim(attempt: Attempt, seen: SeenTransaction) -> None:
    """Make the transaction this attempt's own, as `unfit` allows; the unique index decides who has it."""
    taken = None if attempt.named_at else attempt.service_transaction_id
    if not bind_transaction(attempt, seen.transaction_id, instead_of=taken):
        raise CannotSettleError(Refusal.TRANSACTION_TAKEN, transaction=seen.transaction_id)
    attempt.fee = seen.fee


def _reason(resolution: Operation) -> str:
    return f"Settled by {resolution.reference}, which two people signed."
