"""Close an operation whose outcome two people resolved, or that was paid without a request from here, within the last
approval. Never sends.
"""

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_noop

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.web.formatting import stored_error
from backoffice.ledger import provider_list
from backoffice.operations.delivery.record import release_balance
from backoffice.operations.delivery.release import stop_if_altered
from backoffice.operations.errors import CannotResolveError
from backoffice.operations.kinds.resolution.case import (
    ResolutionChoice,
    ResolutionPayload,
    ResolvedOutcome,
    TransactionEvidence,
    may_be_paid_elsewhere,
    may_be_resolved,
    money_kind,
    not_sent,
    open_attempt,
    payment_problem,
    read_payment,
)
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import claim_transaction
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ClosingReason, ResponseCode, coded
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, ReadFailedError

_OUTCOMES = {
    ResolvedOutcome.SUCCEEDED: (Status.SUCCEEDED, Outcome.SUCCEEDED),
    ResolvedOutcome.FAILED: (Status.FAILED, Outcome.FAILED),
}


def check_evidence(payload: ResolutionPayload) -> None:
    """Check that the provider still shows what the resolution rests on.

    Reads the provider, so it is called outside of transactions. Raises CannotResolveError.
    """
    if payload.attempt is None:
        _check_payment(payload)
    else:
        _check_evidence_unchanged(payload)


def _check_payment(payload: ResolutionPayload) -> None:
    """Check that the operation is as people approved it, and that the transaction still matches it."""
    operation, seen = not_sent(payload.operation), payload.transaction
    if operation is None or seen is None:
        return  # refused with the reason when it is applied
    if stop_if_altered(operation.pk):
        raise CannotResolveError(Refusal.SEAL_INVALID)
    try:
        record = read_payment(operation, seen.transaction_id)
    except GatewayError as exc:
        raise CannotResolveError(Refusal.LIST_UNREADABLE, **stored_error(exc)) from exc
    if record is None or record.status != seen.status or payment_problem(operation, record):
        raise CannotResolveError(
            Refusal.RECORD_CHANGED, transaction=seen.transaction_id, status=seen.quoted_status
        )


def _check_evidence_unchanged(payload: ResolutionPayload) -> None:
    """Check that the provider's list still shows the transaction that the resolution rests on, or still does not.

    Hours may pass between the two people. A status that changed since would close the operation wrongly.
    """
    _, attempt = open_attempt(payload.operation)
    claimed = payload.claimed
    seen = claimed.shown if claimed else payload.transaction
    transaction_id = claimed.transaction_id if claimed else seen and seen.transaction_id
    if attempt is None or not transaction_id:
        return
    since = attempt.received_id_search_from if claimed else attempt.search_from
    try:
        listed = provider_list.transactions_since(attempt.operation.currency, since)
        current = next((one for one in listed.records if one.transaction_id == transaction_id), None)
        if current is None and not listed.is_complete:
            raise ReadFailedError.of(gettext_noop("There was no time left for the request."))
    except GatewayError as exc:
        raise CannotResolveError(Refusal.LIST_UNREADABLE, **stored_error(exc)) from exc
    if seen is None and current is not None:
        raise CannotResolveError(Refusal.RECORD_LISTED_AGAIN, transaction=transaction_id)
    if seen is not None and (current is None or current.status != seen.status):
        raise CannotResolveError(
            Refusal.RECORD_CHANGED, transaction=transaction_id, status=seen.quoted_status
        )


@transaction.atomic
def resolve_operation(resolution: Operation, payload: ResolutionPayload, actor: User) -> None:
    """Close the operation and its attempt as approved, in the transaction of the last approval.

    Raises CannotResolveError if the outcome is known by now, the operation was released or sent meanwhile, another
    attempt has claimed the transaction, or the provider may still execute the operation.
    """
    operation = Operation.objects.get_locked(payload.operation)
    if payload.attempt is None:
        status, attempt = Status.SUCCEEDED, _add_payment(operation, resolution, payload)
    else:
        status, attempt = _close_attempt(operation, resolution, payload)
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


def _close_attempt(
    operation: Operation, resolution: Operation, payload: ResolutionPayload
) -> tuple[Status, Attempt]:
    attempt = _lock_open_attempt(operation, payload)
    status, attempt.outcome = _approved_outcome(attempt, payload)
    if payload.transaction is not None:
        _claim_transaction(attempt, payload.transaction)
    attempt.closed_at, attempt.next_check_at = clock.now(), None
    attempt.resolution = resolution
    attempt.save()
    return status, attempt


def _add_payment(operation: Operation, resolution: Operation, payload: ResolutionPayload) -> Attempt:
    """Add the attempt that claims the transaction which paid the operation. It has no request and no release.

    The trigger of the states lets the operation succeed only with such an attempt.
    """
    found, seen = money_kind(operation), payload.transaction
    if operation.status != Status.APPROVED:
        raise _known_outcome(operation)
    if not may_be_paid_elsewhere(operation) or found is None or seen is None:
        raise CannotResolveError
    kind, content = found
    now, approvals = clock.now(), resolution.approvals.select_related("approver", "on_behalf_of")
    response = coded(
        ResponseCode.PAID_OUTSIDE,
        resolution=resolution.reference,
        people=", ".join([str(resolution.preparer), *(one.approved_by for one in approvals)]),
        reason=payload.reason,
    )
    attempt = Attempt(
        operation=operation,
        number=operation.attempts.count() + 1,
        released_by=None,
        digest=operation.digest,
        started_at=now,
        begin_by=now,
        deadline_at=now,
        balance=kind.debit(content).currency,
        amount=operation.amount,
        outcome=Outcome.SUCCEEDED,
        responses=[response],
        provider_transaction_id=seen.transaction_id,
        fee=seen.fee,
        closed_at=now,
        resolution=resolution,
    )
    # A late response may have named it for an attempt that was proven not executed.
    operation.attempts.filter(provider_transaction_id=seen.transaction_id).update(
        provider_transaction_id=None, id_received_at=None
    )
    try:
        with transaction.atomic():
            attempt.save(force_insert=True)
    except IntegrityError as exc:
        if not Attempt.objects.filter(provider_transaction_id=seen.transaction_id).exists():
            raise
        raise CannotResolveError(Refusal.TRANSACTION_CLAIMED, transaction=seen.transaction_id) from exc
    return attempt


def _lock_open_attempt(operation: Operation, payload: ResolutionPayload) -> Attempt:
    """The attempt that the resolution is about, locked, if its outcome is still open."""
    attempts = Attempt.objects.select_for_update().filter(operation=operation, closed_at__isnull=True)
    attempt = next((one for one in attempts if one.number == payload.attempt), None)
    if attempt is None or not may_be_resolved(operation, attempt):
        raise _known_outcome(operation)
    return attempt


def _known_outcome(operation: Operation) -> CannotResolveError:
    return CannotResolveError(Refusal.OUTCOME_KNOWN, reference=operation.reference, status=operation.status)


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
