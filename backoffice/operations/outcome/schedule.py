"""Run the status checks that are due, and make them due when a webhook arrives.

A webhook never changes an operation; only a read of the provider does. Any number of processes may run
checks; each attempt is checked by the one that claims it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet

from backoffice.core import clock
from backoffice.core.isolation import run_each_isolated
from backoffice.core.leases import claim_due_row, next_run_time
from backoffice.ledger.mirror import sync
from backoffice.ledger.provider_list import ListReading
from backoffice.operations.matching import list_reading
from backoffice.operations.models.operations import IS_UNMATCHED, Attempt
from backoffice.operations.models.reason_codes import CheckResult
from backoffice.operations.outcome.confirmation import confirm_operation
from backoffice.operations.states import AWAITING_PROVIDER

BATCH_SIZE = 100
SHARED_PERIOD = timedelta(minutes=15)  # attempts as recent share one reading of the provider's list
# Long enough for one check. Then another process takes over; a repeated check does no harm.
MAX_CHECK_TIME = timedelta(seconds=10)


def check_due(attempts: QuerySet[Attempt] | None = None) -> int:
    """Check every attempt (of these, if given) without a proven end whose check is due, the longest due first.

    Attempts that another process is checking are skipped. Returns how many were checked.
    """
    attempts = Attempt.objects.all() if attempts is None else attempts
    due = attempts.filter(next_check_at__lte=clock.recent(), operation__status__in=AWAITING_PROVIDER)
    in_turn = due.order_by("next_check_at").select_related("operation")
    rows = {check: check.attempt.operation.reference for check in _with_readings(in_turn[:BATCH_SIZE])}
    return sum(run_each_isolated(_check, rows, failed=_note_failure))


@dataclass(frozen=True)
class _DueCheck:
    """An attempt whose check is due, and the reading of the provider's list that it shares with others."""

    attempt: Attempt
    reading: ListReading | None = field(compare=False)


def _with_readings(attempts: Iterable[Attempt]) -> list[_DueCheck]:
    """The checks, with two readings of the list per currency for recent attempts: that of attempts whose transaction is
    known goes further back.

    An older one has a reading of its own, so that the others do not wait while the list is read back to it.
    """
    attempts, since = list(attempts), clock.recent() - SHARED_PERIOD
    recent: dict[tuple[str, bool], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.started_at > since:
            recent[_shared_by(attempt)].append(attempt)
    readings = {key: list_reading(key[0], shared) for key, shared in recent.items()}
    return [
        _DueCheck(one, readings.get(_shared_by(one)) if one.started_at > since else None) for one in attempts
    ]


def _shared_by(attempt: Attempt) -> tuple[str, bool]:
    return attempt.operation.currency, attempt.provider_transaction_id is not None


def _check(due: _DueCheck) -> bool:
    """Check the status unless another process does; returns whether it was checked."""
    if not claim_due_row(due.attempt, "next_check_at", until=clock.now() + MAX_CHECK_TIME):
        return False
    confirm_operation(due.attempt.operation_id, reading=due.reading)
    return True


def _note_failure(due: _DueCheck, error: str) -> None:
    Attempt.objects.filter(pk=due.attempt.pk).update(
        check_result=CheckResult.INTERNAL_ERROR, check_parameters={"error": error}
    )


UNNAMED_CHECK_INTERVAL = timedelta(seconds=15)
"""Open attempts that a webhook does not name are checked at most this often, however many webhooks arrive."""


@dataclass(frozen=True)
class ScheduledChecks:
    """The open operations that are due at once, by the transaction that names them; the newest `UNMATCHED_LISTED` of
    those without a transaction yet, any of which may be meant, and how many there are; and how many `others` were
    brought forward.
    """

    named: Mapping[str, Sequence[UUID]]
    unmatched: Sequence[UUID]
    unmatched_count: int
    others: int


UNMATCHED_LISTED = 10


def schedule_checks(transaction_ids: Collection[str]) -> ScheduledChecks:
    """Make the named attempts due now, other open attempts due soon, and request a refresh of the mirror.

    Other open attempts may be meant as well; they become due as `UNNAMED_CHECK_INTERVAL` allows. What a webhook
    says of a closed attempt reaches reconciliation through the mirror. No check is ever postponed, and a check in
    progress keeps the earlier time set here (`outcome.confirmation`). The regular schedule depends on time
    alone, so an additional check does not shorten it.

    Idempotent. Each statement runs in its own transaction, so no row stays locked while another is waited
    for, and each condition uses columns of the attempt only, so it is evaluated against the row's current
    state.
    """
    sync.request_sync()
    now = clock.now()
    soon = next_run_time("checks of unnamed", interval=UNNAMED_CHECK_INTERVAL)
    named = Attempt.objects.filter(provider_transaction_id__in=transaction_ids)
    named.filter(closed_at__isnull=True, next_check_at__gt=now).update(next_check_at=now)
    others = Attempt.objects.filter(closed_at__isnull=True, next_check_at__gt=soon).update(next_check_at=soon)
    due: dict[str, list[UUID]] = defaultdict(list)
    open_and_named = named.filter(closed_at__isnull=True, next_check_at__isnull=False)
    for transaction_id, operation in open_and_named.values_list("provider_transaction_id", "operation_id"):
        due[transaction_id or ""].append(operation)
    unmatched = Attempt.objects.filter(IS_UNMATCHED, next_check_at__isnull=False).order_by("-started_at")
    listed = list(unmatched.values_list("operation_id", flat=True)[: UNMATCHED_LISTED + 1])
    count = len(listed) if len(listed) <= UNMATCHED_LISTED else unmatched.count()
    return ScheduledChecks(due, listed[:UNMATCHED_LISTED], count, others)


def run_scheduled_checks(transaction_ids: Collection[str]) -> int:
    """Check due attempts that are named, then those without a transaction; returns how many."""
    named = Attempt.objects.filter(provider_transaction_id__in=transaction_ids)
    return sum(check_due(attempts) for attempts in (named, Attempt.objects.filter(IS_UNMATCHED)))
