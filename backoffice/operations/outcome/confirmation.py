"""Close a sent operation by what the provider's transaction list shows. Never sends.

A transaction the provider named in its answer decides by itself. Otherwise a transaction is claimed if it is the
only candidate, since nothing else leaves the balance meanwhile (`delivery.balance_queue`). Absence proves nothing.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, fault_points
from backoffice.operations.delivery.record import first_recheck_time, next_check_time, release_balance
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import EXECUTION_WINDOW, MatchResult, claim_transaction, find_match
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import CheckResult
from backoffice.operations.states import AWAITING_PROVIDER, Outcome, Status
from payments_gateway import TransactionRecord

RECHECK_SOON = timedelta(minutes=2)  # while the balance is held and the next look may free it
RECHECK_AFTER = timedelta(minutes=15)  # past the horizon, while there is something definite to wait for


def listing_delay() -> timedelta:
    """How long a list that lags is given to show every transaction that could be meant, before one is taken."""
    return 2 * timedelta(seconds=settings.SEND_DEADLINE_SECONDS)


PROCESSING = "processing"
_ENDS = {
    "fulfilled": (Status.SUCCEEDED, Outcome.SUCCEEDED, Action.OPERATION_SUCCEEDED),
    "failed": (Status.FAILED, Outcome.FAILED, Action.OPERATION_FAILED),
}


def confirm_operation(operation_id: UUID, *, actor: User | None = None) -> Operation:
    """Read the service's list and close the operation if the list proves its end.

    Called by a timer, by news from the service, or by a person (`actor`). Nothing is ever sent. What cannot be told for
    a day goes to `review`.
    """
    operation = Operation.objects.get(pk=operation_id)
    attempt = operation.attempts.filter(closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_PROVIDER:
        return operation
    seen = find_match(operation, attempt)
    fault_points.reach("confirm.seen")
    noted = _record_check(operation_id, attempt, seen, actor)
    fault_points.reach("confirm.closed")
    return noted


@transaction.atomic
def _record_check(operation_id: UUID, looked_at: Attempt, seen: MatchResult, actor: User | None) -> Operation:
    """Write down one look at the list, and move the operation where the look proves something."""
    operation = Operation.objects.get_locked(operation_id)
    attempt = Attempt.objects.select_for_update().filter(pk=looked_at.pk, closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_PROVIDER:
        return operation
    attempt.checks += 1
    attempt.check_result, attempt.check_parameters = _result(operation, attempt, seen)
    asked_for = attempt.next_check_at if attempt.next_check_at != looked_at.next_check_at else None
    attempt.next_check_at = _next_check(operation, attempt, seen)
    if asked_for and attempt.next_check_at:
        attempt.next_check_at = min(asked_for, attempt.next_check_at)  # for news that this look did not see
    _apply_match(operation, attempt, seen, actor)
    attempt.save()
    return operation


def _apply_match(operation: Operation, attempt: Attempt, seen: MatchResult, actor: User | None) -> None:
    """Close, go on, or ask people: whatever this look allows."""
    if seen.is_done:
        _close(operation, attempt, "fulfilled", actor)
        return
    record = _decisive_record(operation, attempt, seen)
    if record is not None and _claim(attempt, record):
        if record.status in _ENDS:
            _close(operation, attempt, record.status, actor)
        else:
            _mark_processing(operation, attempt, actor)
    elif attempt.next_check_at is None:
        _transition(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)


def _decisive_record(operation: Operation, attempt: Attempt, seen: MatchResult) -> TransactionRecord | None:
    """The transaction that decides now, if there is one.

    Where no readable answer came, another of the same content may stand in a list that lags before ours does: it is
    taken for ours only once ours has had the time to be there. Where the service accepted ours without a name, which is
    its custom, the first look takes it if the balance before it is the one that we saw; to wait there, too, would let
    one a minute leave a balance. And it proves failure only when ours could not come any more, so that `failed` never
    hides a debit. What there are doubts about is never taken (`looking`).
    """
    record = _single_candidate(seen)
    if record is None:
        return None
    if attempt.service_transaction_id not in {None, record.transaction_id}:
        return None  # another was named since the list was read
    if attempt.named_at:
        return record
    return record if seen.at >= _earliest_claim_time(operation, attempt, record) else None


def _single_candidate(seen: MatchResult) -> TransactionRecord | None:
    """The only one that can be ours, if nothing but time keeps it from being taken."""
    if len(seen.found) != 1 or seen.rejected_because or seen.found[0].status not in {*_ENDS, PROCESSING}:
        return None
    return seen.found[0]


def _earliest_claim_time(operation: Operation, attempt: Attempt, record: TransactionRecord) -> datetime:
    """From when on this one is taken for ours: when ours would be in the list, or could not come any more."""
    may_hide_ours = record.status == "failed" or (
        record.status == PROCESSING and operation.status == Status.UNKNOWN
    )
    if may_hide_ours:
        return attempt.started_at + EXECUTION_WINDOW
    if operation.status == Status.PROCESSING and _follows_watermark(attempt, record):
        return attempt.started_at
    return attempt.started_at + listing_delay()


def _follows_watermark(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether nothing moved the balance between our watermark and this transaction, as far as both tell."""
    return record.previous_balance is None or record.previous_balance == attempt.watermark_balance


def _claim(attempt: Attempt, record: TransactionRecord) -> bool:
    """Make the transaction this attempt's own; False if it became another's meanwhile."""
    if not claim_transaction(attempt, record.transaction_id):
        return False
    attempt.fee = record.fee
    return True


def _result(operation: Operation, attempt: Attempt, seen: MatchResult) -> tuple[CheckResult, dict[str, Any]]:
    """What the look showed, and until when the only one that can be ours is left alone."""
    record = _single_candidate(seen)
    if record is None or attempt.named_at:
        return seen.result
    moment = _earliest_claim_time(operation, attempt, record)
    if seen.at >= moment:
        return seen.result
    return CheckResult.FOUND_TOO_EARLY, seen.result[1] | {"not_before": moment.isoformat()}


def _next_check(operation: Operation, attempt: Attempt, seen: MatchResult) -> datetime | None:
    """When to look again; None once the horizon is reached and there is nothing definite to wait for."""
    if seen.is_nowhere:
        return None
    if attempt.service_transaction_id and len(seen.found) > 1 and seen.at >= attempt.may_come_until:
        return None  # what was taken for ours failed, and another stands beside it: no look can tell more
    in_time = next_check_time(attempt.started_at, seen.at)
    soon = _early_recheck(operation, attempt, seen)
    if in_time and soon:
        return min(in_time, soon)
    is_under_way = bool(attempt.service_transaction_id) and [one.status for one in seen.found] == [PROCESSING]
    return in_time or (seen.at + RECHECK_AFTER if seen.problem or is_under_way else None)


def _early_recheck(operation: Operation, attempt: Attempt, seen: MatchResult) -> datetime | None:
    """When another look may free a balance that is held; None if nothing but the schedule tells."""
    record = _single_candidate(seen)
    if attempt.service_transaction_id:
        return None
    if record is not None and seen.at < _earliest_claim_time(operation, attempt, record):
        return seen.at + RECHECK_SOON
    if seen.problem:
        return seen.at + (RECHECK_SOON if seen.at - attempt.started_at < EXECUTION_WINDOW else RECHECK_AFTER)
    return None


def _close(operation: Operation, attempt: Attempt, ended: str, actor: User | None) -> None:
    status, attempt.outcome, action = _ENDS[ended]
    attempt.closed_at, attempt.next_check_at = clock.now(), None
    attempt.watch_next_at = first_recheck_time(attempt.closed_at)
    attempt.save()
    _transition(operation, attempt, status, action, actor)
    release_balance(attempt)


def _mark_processing(operation: Operation, attempt: Attempt, actor: User | None) -> None:
    """The service has it and is not done: from now on the transaction is known by its id, and the balance is free."""
    attempt.next_check_at = attempt.next_check_at or attempt.started_at
    if operation.status == Status.UNKNOWN:
        _transition(operation, attempt, Status.PROCESSING, Action.OPERATION_ACCEPTED, actor)
    release_balance(attempt)


def _transition(
    operation: Operation, attempt: Attempt, status: Status, action: Action, actor: User | None
) -> None:
    failed = {"reason": "The service reports this transaction as failed."} if status == Status.FAILED else {}
    transition(operation, status, **failed)
    audit.record(
        action,
        actor=actor,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        service_transaction_id=attempt.service_transaction_id,
        fee=attempt.fee,
        check={"code": attempt.check_result, **attempt.check_parameters},
        status=status,
    )
