"""Closes what was sent by what the service's own transaction list shows. Never sends.

A transaction that the service named when it answered decides by itself. Another one is taken for ours if it is the only
one that can be: nothing else leaves the balance while an attempt is in doubt (`turns`). Absence proves nothing.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, fault_points
from backoffice.operations.check_results import CheckResult
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.looking import WINDOW, Look, look
from backoffice.operations.services.moves import move
from backoffice.operations.services.recording import bind_transaction, next_look_at, settled
from backoffice.operations.services.watching import first_watch
from backoffice.operations.states import AWAITING_THE_SERVICE, Outcome, Status
from payments_gateway import TransactionRecord

SOON = timedelta(minutes=2)  # while the balance is held and the next look may free it
LOOK_AGAIN_AFTER = timedelta(minutes=15)  # past the horizon, while there is something definite to wait for


def settles_after() -> timedelta:
    """How long a list that lags is given to show every transaction that could be meant, before one is taken."""
    return 2 * timedelta(seconds=settings.SEND_DEADLINE_SECONDS)


UNDER_WAY = "processing"
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
    if attempt is None or operation.status not in AWAITING_THE_SERVICE:
        return operation
    seen = look(operation, attempt)
    fault_points.reach("confirm.seen")
    noted = _note(operation_id, attempt, seen, actor)
    fault_points.reach("confirm.closed")
    return noted


@transaction.atomic
def _note(operation_id: UUID, looked_at: Attempt, seen: Look, actor: User | None) -> Operation:
    """Write down one look at the list, and move the operation where the look proves something."""
    operation = Operation.objects.get_locked(operation_id)
    attempt = Attempt.objects.select_for_update().filter(pk=looked_at.pk, closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_THE_SERVICE:
        return operation
    attempt.checks += 1
    attempt.check_result, attempt.check_parameters = _result(operation, attempt, seen)
    asked_for = attempt.next_check_at if attempt.next_check_at != looked_at.next_check_at else None
    attempt.next_check_at = _next_look(operation, attempt, seen)
    if asked_for and attempt.next_check_at:
        attempt.next_check_at = min(asked_for, attempt.next_check_at)  # for news that this look did not see
    _conclude(operation, attempt, seen, actor)
    attempt.save()
    return operation


def _conclude(operation: Operation, attempt: Attempt, seen: Look, actor: User | None) -> None:
    """Close, go on, or ask people: whatever this look allows."""
    if seen.is_done:
        _close(operation, attempt, "fulfilled", actor)
        return
    record = _only_one(operation, attempt, seen)
    if record is not None and _is_ours(attempt, record):
        if record.status in _ENDS:
            _close(operation, attempt, record.status, actor)
        else:
            _go_on(operation, attempt, actor)
    elif attempt.next_check_at is None:
        _move(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)


def _only_one(operation: Operation, attempt: Attempt, seen: Look) -> TransactionRecord | None:
    """The transaction that decides now, if there is one.

    Where no readable answer came, another of the same content may stand in a list that lags before ours does: it is
    taken for ours only once ours has had the time to be there. Where the service accepted ours without a name, which is
    its custom, the first look takes it if the balance before it is the one that we saw; to wait there, too, would let
    one a minute leave a balance. And it proves failure only when ours could not come any more, so that `failed` never
    hides a debit. What there are doubts about is never taken (`looking`).
    """
    record = _candidate(seen)
    if record is None:
        return None
    if attempt.service_transaction_id not in {None, record.transaction_id}:
        return None  # another was named since the list was read
    if attempt.named_at:
        return record
    return record if seen.at >= _taken_from(operation, attempt, record) else None


def _candidate(seen: Look) -> TransactionRecord | None:
    """The only one that can be ours, if nothing but time keeps it from being taken."""
    if len(seen.found) != 1 or seen.rejected_because or seen.found[0].status not in {*_ENDS, UNDER_WAY}:
        return None
    return seen.found[0]


def _taken_from(operation: Operation, attempt: Attempt, record: TransactionRecord) -> datetime:
    """From when on this one is taken for ours: when ours would be in the list, or could not come any more."""
    may_hide_ours = record.status == "failed" or (
        record.status == UNDER_WAY and operation.status == Status.UNKNOWN
    )
    if may_hide_ours:
        return attempt.started_at + WINDOW
    if operation.status == Status.PROCESSING and _is_next(attempt, record):
        return attempt.started_at
    return attempt.started_at + settles_after()


def _is_next(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether nothing moved the balance between our watermark and this transaction, as far as both tell."""
    return record.previous_balance is None or record.previous_balance == attempt.watermark_balance


def _is_ours(attempt: Attempt, record: TransactionRecord) -> bool:
    """Make the transaction this attempt's own; False if it became another's meanwhile."""
    if not bind_transaction(attempt, record.transaction_id):
        return False
    attempt.fee = record.fee
    return True


def _result(operation: Operation, attempt: Attempt, seen: Look) -> tuple[CheckResult, dict[str, Any]]:
    """What the look showed, and until when the only one that can be ours is left alone."""
    record = _candidate(seen)
    if record is None or attempt.named_at:
        return seen.result
    moment = _taken_from(operation, attempt, record)
    if seen.at >= moment:
        return seen.result
    return CheckResult.FOUND_TOO_EARLY, seen.result[1] | {"not_before": moment.isoformat()}


def _next_look(operation: Operation, attempt: Attempt, seen: Look) -> datetime | None:
    """When to look again; None once the horizon is reached and there is nothing definite to wait for."""
    if seen.is_nowhere:
        return None
    if attempt.service_transaction_id and len(seen.found) > 1 and seen.at >= attempt.may_come_until:
        return None  # what was taken for ours failed, and another stands beside it: no look can tell more
    in_time = next_look_at(attempt.started_at, seen.at)
    soon = _soon(operation, attempt, seen)
    if in_time and soon:
        return min(in_time, soon)
    is_under_way = bool(attempt.service_transaction_id) and [one.status for one in seen.found] == [UNDER_WAY]
    return in_time or (seen.at + LOOK_AGAIN_AFTER if seen.problem or is_under_way else None)


def _soon(operation: Operation, attempt: Attempt, seen: Look) -> datetime | None:
    """When another look may free a balance that is held; None if nothing but the schedule tells."""
    record = _candidate(seen)
    if attempt.service_transaction_id:
        return None
    if record is not None and seen.at < _taken_from(operation, attempt, record):
        return seen.at + SOON
    if seen.problem:
        return seen.at + (SOON if seen.at - attempt.started_at < WINDOW else LOOK_AGAIN_AFTER)
    return None


def _close(operation: Operation, attempt: Attempt, ended: str, actor: User | None) -> None:
    status, attempt.outcome, action = _ENDS[ended]
    attempt.closed_at, attempt.next_check_at = clock.now(), None
    attempt.watch_next_at = first_watch(attempt.closed_at)
    attempt.save()
    _move(operation, attempt, status, action, actor)
    settled(attempt)


def _go_on(operation: Operation, attempt: Attempt, actor: User | None) -> None:
    """The service has it and is not done: from now on the transaction is known by its id, and the balance is free."""
    attempt.next_check_at = attempt.next_check_at or attempt.started_at
    if operation.status == Status.UNKNOWN:
        _move(operation, attempt, Status.PROCESSING, Action.OPERATION_ACCEPTED, actor)
    settled(attempt)


def _move(operation: Operation, attempt: Attempt, status: Status, action: Action, actor: User | None) -> None:
    failed = {"reason": "The service reports this transaction as failed."} if status == Status.FAILED else {}
    move(operation, status, **failed)
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
