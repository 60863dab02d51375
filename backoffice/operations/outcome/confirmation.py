"""Close a sent operation by what the provider's transaction list shows. Never sends.

A transaction whose id a response contained decides by itself. Otherwise a transaction is claimed if it is
the only candidate, since nothing else is sent from the balance meanwhile (`delivery.balance_queue`). Absence
from the list proves nothing.
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
from backoffice.core.web.request_context import about_operation
from backoffice.ledger.provider_list import ListReading
from backoffice.operations.delivery.record import next_check_time, release_balance
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import MatchResult, claim_transaction, find_match, is_next_after_watermark
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import CheckResult, ClosingReason, coded
from backoffice.operations.states import AWAITING_PROVIDER, Outcome, Status
from payments_gateway import TransactionRecord

RECHECK_SOON = timedelta(minutes=2)  # while the balance is blocked and the next check may free it
RECHECK_AFTER = timedelta(minutes=15)  # past the horizon, while a definite result can still be expected


def listing_delay() -> timedelta:
    """How long after an attempt's start every candidate is listed, even by a list that lags."""
    return 2 * timedelta(seconds=settings.SEND_DEADLINE_SECONDS)


PROCESSING = "processing"
_OUTCOMES = {
    "fulfilled": (Status.SUCCEEDED, Outcome.SUCCEEDED, Action.OPERATION_SUCCEEDED),
    "failed": (Status.FAILED, Outcome.FAILED, Action.OPERATION_FAILED),
}


def confirm_operation(
    operation_id: UUID, *, actor: User | None = None, reading: ListReading | None = None
) -> Operation:
    """Read the provider's list and close the operation if the list proves its outcome.

    Called by a timer, a webhook or a user (`actor`). Nothing is ever sent. An outcome that is still unknown
    at the horizon (one day) goes to `review`. A `reading` is shared with other checks, and began after this one was
    due.
    """
    operation = Operation.objects.get(pk=operation_id)
    attempt = operation.attempts.filter(closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_PROVIDER:
        return operation
    with about_operation(operation.reference):
        match = find_match(operation, attempt, reading)
        fault_points.reach("confirm.seen")
        operation = _record_check(operation_id, attempt, match, actor)
        fault_points.reach("confirm.closed")
    return operation


@transaction.atomic
def _record_check(operation_id: UUID, checked: Attempt, match: MatchResult, actor: User | None) -> Operation:
    """Record one status check, and change the operation's status if the check proves something."""
    operation = Operation.objects.get_locked(operation_id)
    attempt = Attempt.objects.select_for_update().filter(pk=checked.pk, closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_PROVIDER:
        return operation
    attempt.checks += 1
    attempt.check_result, attempt.check_parameters = _check_result(operation, attempt, match)
    requested = attempt.next_check_at if attempt.next_check_at != checked.next_check_at else None
    attempt.next_check_at = _next_check(operation, attempt, match)
    if requested and attempt.next_check_at:
        attempt.next_check_at = min(requested, attempt.next_check_at)  # a webhook requested an earlier check
    _apply_match(operation, attempt, match, actor)
    attempt.save()
    return operation


def _apply_match(operation: Operation, attempt: Attempt, match: MatchResult, actor: User | None) -> None:
    """Close the operation, mark it as processing, or escalate it to review, as this check allows."""
    if match.confirmed_done:
        _close(operation, attempt, "fulfilled", actor)
        return
    record = _decisive_record(operation, attempt, match)
    if record is not None and claim_transaction(attempt, record.transaction_id):
        attempt.fee = record.fee
        if record.status in _OUTCOMES:
            _close(operation, attempt, record.status, actor)
        else:
            _mark_processing(operation, attempt, actor)
    elif attempt.next_check_at is None:
        _transition(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)


def _decisive_record(operation: Operation, attempt: Attempt, match: MatchResult) -> TransactionRecord | None:
    """The transaction that decides the outcome now; None if there is none yet.

    Where no readable response arrived, a delayed list may show a similar transaction before ours: a
    candidate is claimed only after `listing_delay`. Where the provider accepted the request without naming a
    transaction, the first check may claim the candidate if the balance before it equals the watermark's;
    otherwise each balance could send only one operation a minute. A failed transaction is claimed only once
    ours can no longer be executed, so that `failed` never hides a debit. A candidate that `matching` rejects
    is never claimed.
    """
    record = _single_candidate(match)
    if record is None:
        return None
    if attempt.provider_transaction_id not in {None, record.transaction_id}:
        return None  # another was claimed since the list was read
    if attempt.id_received_at:
        return record
    return record if match.checked_at >= _earliest_claim_time(operation, attempt, record) else None


def _single_candidate(match: MatchResult) -> TransactionRecord | None:
    """The only candidate, if it was not rejected and its status is one we know."""
    if (
        len(match.candidates) != 1
        or match.mismatch_reason
        or match.candidates[0].status not in {*_OUTCOMES, PROCESSING}
    ):
        return None
    return match.candidates[0]


def _earliest_claim_time(operation: Operation, attempt: Attempt, record: TransactionRecord) -> datetime:
    """The earliest time to claim this candidate: when ours would be listed or can no longer be executed."""
    may_hide_own = record.status == "failed" or (
        record.status == PROCESSING and operation.status == Status.UNKNOWN
    )
    if may_hide_own:
        return attempt.execution_deadline
    if operation.status == Status.PROCESSING and _follows_watermark(attempt, record):
        return attempt.started_at
    return attempt.started_at + listing_delay()


def _follows_watermark(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether the balance did not change between our watermark and this transaction, as far as reported."""
    return record.previous_balance is None or is_next_after_watermark(attempt, record)


def _check_result(
    operation: Operation, attempt: Attempt, match: MatchResult
) -> tuple[CheckResult, dict[str, Any]]:
    """The result to record; for a candidate that may not be claimed yet, with the time from which it may."""
    record = _single_candidate(match)
    if record is None or attempt.id_received_at:
        return match.result
    moment = _earliest_claim_time(operation, attempt, record)
    if match.checked_at >= moment:
        return match.result
    return CheckResult.FOUND_TOO_EARLY, match.result[1] | {"not_before": moment.isoformat()}


def _next_check(operation: Operation, attempt: Attempt, match: MatchResult) -> datetime | None:
    """When to check again; None past the horizon if no definite result can be expected."""
    if match.is_unobservable:
        return None
    if (
        attempt.provider_transaction_id
        and len(match.candidates) > 1
        and match.checked_at >= attempt.execution_deadline
    ):
        # the claimed transaction failed and another candidate is listed: further checks cannot decide
        return None
    scheduled = next_check_time(attempt.started_at, match.checked_at)
    early = _early_recheck(operation, attempt, match)
    if scheduled and early:
        return min(scheduled, early)
    is_processing = bool(attempt.provider_transaction_id) and [one.status for one in match.candidates] == [
        PROCESSING
    ]
    return scheduled or (match.checked_at + RECHECK_AFTER if match.problem or is_processing else None)


def _early_recheck(operation: Operation, attempt: Attempt, match: MatchResult) -> datetime | None:
    """When another check may free a blocked balance; None if the regular schedule is enough."""
    record = _single_candidate(match)
    if attempt.provider_transaction_id:
        return None
    if record is not None and match.checked_at < _earliest_claim_time(operation, attempt, record):
        return match.checked_at + RECHECK_SOON
    if match.problem:
        return match.checked_at + (
            RECHECK_SOON if match.checked_at < attempt.execution_deadline else RECHECK_AFTER
        )
    return None


def _close(operation: Operation, attempt: Attempt, provider_status: str, actor: User | None) -> None:
    status, attempt.outcome, action = _OUTCOMES[provider_status]
    attempt.closed_at, attempt.next_check_at = clock.now(), None
    attempt.save()
    _transition(operation, attempt, status, action, actor)
    release_balance(attempt)


def _mark_processing(operation: Operation, attempt: Attempt, actor: User | None) -> None:
    """The provider is executing the claimed transaction; the balance is free for the next release."""
    attempt.next_check_at = attempt.next_check_at or attempt.started_at
    if operation.status == Status.UNKNOWN:
        _transition(operation, attempt, Status.PROCESSING, Action.OPERATION_ACCEPTED, actor)
    release_balance(attempt)


def _transition(
    operation: Operation, attempt: Attempt, status: Status, action: Action, actor: User | None
) -> None:
    failed = {"closing_reason": coded(ClosingReason.REPORTED_FAILED)} if status == Status.FAILED else {}
    transition(operation, status, **failed)
    audit.record(
        action,
        actor=actor,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        provider_transaction_id=attempt.provider_transaction_id,
        fee=attempt.fee,
        check={"code": attempt.check_result, **attempt.check_parameters},
        status=status,
    )
