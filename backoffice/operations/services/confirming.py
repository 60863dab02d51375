"""Closes `processing` and `unknown` operations by what the service's own transaction list shows. Never sends."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.ledger import selectors as ledger
from backoffice.operations.kinds import KINDS
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.moves import move
from backoffice.operations.services.recording import no_answer, record_answer
from backoffice.operations.states import AWAITING_THE_SERVICE, Outcome, Status
from payments_gateway import GatewayError, TransactionRecord

CHECK_AFTER = tuple(
    timedelta(seconds=seconds) for seconds in (2, 3, 5, 5, 15, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600)
)
LIST_TOLERANCE = timedelta(minutes=5)
GRACE_AFTER_DEADLINE = timedelta(seconds=30)


def confirm_operation(operation_id: UUID, *, actor: User | None = None) -> Operation:
    """Read the service's list and close the operation if exactly one transaction can be it.

    Called by a timer, or by a person (`actor`). Whatever the list shows, nothing is ever sent; absence proves nothing,
    so an operation that cannot be told for a day goes to `review`.
    """
    operation = Operation.objects.get(pk=operation_id)
    attempt = operation.attempts.filter(closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_THE_SERVICE:
        return operation
    try:
        candidates = _candidates(operation, attempt)
    except GatewayError as exc:
        return _note(operation_id, attempt.pk, [], f"The list could not be read: {exc}", actor)
    return _note(operation_id, attempt.pk, candidates, _seen(candidates), actor)


def abandon_attempt(attempt_id: int, *, now: datetime) -> None:
    """Declare the outcome of a `sending` operation unknown if its sender never came back."""
    attempt = Attempt.objects.select_related("operation").get(pk=attempt_id)
    if attempt.operation.status == Status.SENDING and now > attempt.deadline_at + GRACE_AFTER_DEADLINE:
        record_answer(attempt_id, no_answer())


def _candidates(operation: Operation, attempt: Attempt) -> list[TransactionRecord]:
    """Transactions that can be this attempt and that no other attempt has claimed."""
    mark = ledger.Watermark(
        attempt.watermark_transaction_id, attempt.watermark_balance, attempt.watermark_service_time
    )
    kind = KINDS[operation.kind]
    payload = kind.read(operation.payload)
    records = ledger.transactions_since(mark, currency=operation.currency, tolerance=LIST_TOLERANCE)
    if attempt.service_transaction_id:
        return [record for record in records if record.transaction_id == attempt.service_transaction_id]
    found = [record for record in records if kind.recognises(payload, record)]
    ids = [record.transaction_id for record in found]
    claimed = set(
        Attempt.objects.filter(service_transaction_id__in=ids).values_list(
            "service_transaction_id", flat=True
        )
    )
    return [record for record in found if record.transaction_id not in claimed]


def _seen(candidates: list[TransactionRecord]) -> str:
    if len(candidates) == 1:
        return f"Found as {candidates[0].transaction_id}: {candidates[0].status}"
    if candidates:
        return f"{len(candidates)} transactions in the list could be this one"
    return "Not in the service's list yet"


@transaction.atomic
def _note(
    operation_id: UUID, attempt_id: int, candidates: list[TransactionRecord], seen: str, actor: User | None
) -> Operation:
    """Write down one look at the list, and close the operation where it proves the end."""
    operation = Operation.objects.get_locked(operation_id)
    attempt = Attempt.objects.select_for_update().get(pk=attempt_id)
    if attempt.closed_at is not None or operation.status not in AWAITING_THE_SERVICE:
        return operation
    attempt.checks += 1
    attempt.last_check = seen[:300]
    attempt.next_check_at = timezone.now() + CHECK_AFTER[min(attempt.checks, len(CHECK_AFTER) - 1)]
    status = Status(operation.status)
    if len(candidates) == 1 and _is_free(candidates[0], attempt):
        status = _take(attempt, candidates[0], status)
    elif attempt.checks >= len(CHECK_AFTER):
        status, attempt.next_check_at = Status.REVIEW, None
    attempt.save()
    if status != operation.status:
        _close(operation, attempt, status, actor)
    return operation


def _is_free(record: TransactionRecord, attempt: Attempt) -> bool:
    """Whether nobody claimed the transaction since the list was read. The unique index has the last word."""
    return (
        not Attempt.objects.filter(service_transaction_id=record.transaction_id)
        .exclude(pk=attempt.pk)
        .exists()
    )


def _take(attempt: Attempt, record: TransactionRecord, status: Status) -> Status:
    """Make the transaction this attempt's own; the status that it proves."""
    attempt.service_transaction_id = record.transaction_id
    attempt.fee = record.fee
    ends = {"fulfilled": (Status.SUCCEEDED, Outcome.SUCCEEDED), "failed": (Status.FAILED, Outcome.FAILED)}
    if record.status not in ends:
        return Status.PROCESSING if record.status == "processing" else status
    status, attempt.outcome = ends[record.status]
    attempt.closed_at, attempt.next_check_at = timezone.now(), None
    return status


_ACTIONS = {
    Status.SUCCEEDED: Action.OPERATION_SUCCEEDED,
    Status.FAILED: Action.OPERATION_FAILED,
    Status.PROCESSING: Action.OPERATION_ACCEPTED,
    Status.REVIEW: Action.OPERATION_ESCALATED,
}


def _close(operation: Operation, attempt: Attempt, status: Status, actor: User | None) -> None:
    reason = (
        {"reason": "The service executed this and reports it as failed."} if status == Status.FAILED else {}
    )
    move(operation, status, **reason)
    audit.record(
        _ACTIONS[status],
        actor=actor,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        service_transaction_id=attempt.service_transaction_id,
        fee=attempt.fee,
        seen=attempt.last_check,
        status=status,
    )
