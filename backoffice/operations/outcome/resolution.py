"""Close an operation whose outcome two people resolved, within the last approval. Never sends."""

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.web.formatting import stored_error
from backoffice.ledger import provider_list
from backoffice.operations.delivery.record import release_balance
from backoffice.operations.errors import CannotResolveError
from backoffice.operations.kinds.resolution.case import (
    ResolutionChoice,
    ResolutionPayload,
    ResolvedOutcome,
    TransactionEvidence,
    may_be_resolved,
    open_attempt,
)
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import claim_transaction
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ClosingReason, coded
from backoffice.operations.refusals import Refusal
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError

_OUTCOMES = {
    ResolvedOutcome.SUCCEEDED: (Status.SUCCEEDED, Outcome.SUCCEEDED),
    ResolvedOutcome.FAILED: (Status.FAILED, Outcome.FAILED),
}


def check_meaning_unchanged(payload: ResolutionPayload) -> None:
    """Check that the provider's list still shows the transaction status that the resolution interprets.

    Reads the provider, so it is called outside of transactions. Raises CannotResolveError if the status has
    changed or cannot be read.
    """
    _, attempt = open_attempt(payload.operation)
    seen = payload.transaction
    if attempt is None or seen is None or payload.meaning is None:
        return
    try:
        listed = provider_list.transactions_since(attempt.operation.currency, attempt.search_from)
    except GatewayError as exc:
        raise CannotResolveError(Refusal.LIST_UNREADABLE, **stored_error(exc)) from exc
    statuses = {record.transaction_id: record.status for record in listed.records}
    if statuses.get(seen.transaction_id) != seen.status:
        raise CannotResolveError(
            Refusal.RECORD_CHANGED, transaction=seen.transaction_id, status=seen.quoted_status
        )


@transaction.atomic
def resolve_operation(resolution: Operation, payload: ResolutionPayload, actor: User) -> None:
    """Close the operation and its attempt as approved, in the transaction of the last approval.

    Raises CannotResolveError if the outcome is known by now, another attempt has claimed the transaction, or
    the provider may still execute the operation.
    """
    operation = Operation.objects.get_locked(payload.operation)
    attempt = _open_attempt(operation, payload)
    status, attempt.outcome = _approved_outcome(attempt, payload)
    if payload.transaction is not None:
        _claim_transaction(attempt, payload.transaction)
    attempt.closed_at, attempt.next_check_at = clock.now(), None
    attempt.resolution = resolution
    attempt.save()
    reason = coded(ClosingReason.RESOLVED, resolution=resolution.reference)
    transition(operation, status, **({"closing_reason": reason} if status == Status.FAILED else {}))
    audit.record(
        Action.OPERATION_RESOLVED,
        actor=actor,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        provider_transaction_id=attempt.provider_transaction_id,
        resolution=resolution.reference,
        reason=payload.reason,
        status=status,
    )
    release_balance(attempt)


def _open_attempt(operation: Operation, payload: ResolutionPayload) -> Attempt:
    """The attempt that the resolution is about, locked, if its outcome is still open."""
    attempts = Attempt.objects.select_for_update().filter(operation=operation, closed_at__isnull=True)
    attempt = attempts.filter(number=payload.attempt).first()
    if attempt is None or not may_be_resolved(operation, attempt):
        raise CannotResolveError(
            Refusal.OUTCOME_KNOWN, reference=operation.reference, status=operation.status
        )
    return attempt


def _approved_outcome(attempt: Attempt, payload: ResolutionPayload) -> tuple[Status, Outcome]:
    """The approved status and outcome. Nothing is closed as failed while it may still be executed."""
    claimed = payload.claimed.transaction_id if payload.claimed else None
    is_claimed_since = (
        payload.choice == ResolutionChoice.NOT_EXECUTED and attempt.provider_transaction_id != claimed
    )
    if payload.outcome == ResolvedOutcome.FAILED and (
        clock.now() < attempt.execution_deadline or is_claimed_since
    ):
        raise CannotResolveError(Refusal.MAY_STILL_BE_EXECUTED, reference=payload.reference)
    return _OUTCOMES[payload.outcome]


def _claim_transaction(attempt: Attempt, seen: TransactionEvidence) -> None:
    """Claim the transaction for this attempt, replacing one that was only matched."""
    replaced = None if attempt.id_received_at else attempt.provider_transaction_id
    if not claim_transaction(attempt, seen.transaction_id, instead_of=replaced):
        raise CannotResolveError(Refusal.TRANSACTION_CLAIMED, transaction=seen.transaction_id)
    attempt.fee = seen.fee
