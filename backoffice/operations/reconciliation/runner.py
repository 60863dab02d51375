"""Keep the comparisons current: compare what changed since the last round, and everything once a day.

Changes are read from three feeds, each in commit order: new mirror rows, the mirror's history of changes, and the
audit log. What was pending is compared again. So the cost of a round depends only on what has changed or is pending.
One process compares at a time; comparing twice gives the same result.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from backoffice.audit.models import Entry, target_uuid
from backoffice.core import clock, leases
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.ledger.models import Mirror, Transaction, TransactionChange
from backoffice.operations.kinds.registry import local_kinds
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import DifferenceCode, difference
from backoffice.operations.models.reconciliation import (
    MAY_STILL_APPEAR,
    Comparison,
    ReconciliationResult,
    ReconciliationState,
)
from backoffice.operations.reconciliation.rules import (
    INCOMING,
    ComparisonResult,
    compare_attempt,
    compare_transaction,
)
from backoffice.operations.reconciliation.store import (
    Compared,
    attempt_json,
    raise_incidents,
    store_comparisons,
)
from backoffice.operations.seals import UNREADABLE

logger = logging.getLogger(__name__)
ROUND_INTERVAL = timedelta(seconds=10)
LEASE_DURATION = timedelta(minutes=1)  # longer than a round takes; after it, another follows a killed process
FULL_PASS_INTERVAL = timedelta(days=1)
# Seconds one call spends on comparing, and again on raising incidents, while there is more.
TIME_BUDGET_SECONDS = 5.0
BATCH_SIZE = 500  # of each feed in one transaction
# The provider's clock may be behind ours: its first records of operations here may be as much older.
CLOCK_DIFFERENCE = timedelta(days=1)
ROWS_PER_STEP = 20_000  # rows of the mirror that one step passes over
_RUN_GAP = timedelta(hours=1)
_OPERATION = Operation._meta.label_lower


@dataclass
class ReconciliationScope:
    """The ids of attempts and mirror rows to compare in one step. `is_cut`: more is waiting."""

    attempts: set[int] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    is_cut: bool = False

    def take(self, comparisons: QuerySet[Comparison]) -> None:
        """Add the attempts and rows of these comparisons."""
        for attempt, row in comparisons.values_list("attempt_id", "transaction_id"):
            self.attempts |= set() if attempt is None else {attempt}
            self.rows |= set() if row is None else {row}


def reconcile_due() -> int:
    """Reconcile unless a round runs, or ran within `ROUND_INTERVAL`; 1 if this call did."""
    lease = leases.acquire_lease("reconciliation", LEASE_DURATION)
    if lease is None:
        return 0
    try:
        reconcile()
    finally:
        lease.release(free_at=clock.now() + ROUND_INTERVAL)
    return 1


def reconcile() -> None:
    """Compare what is new and continue the daily full pass, to the end or for `TIME_BUDGET_SECONDS`.

    Then raise incidents within the same budget, even if there is more to compare.
    """
    until = time.monotonic() + TIME_BUDGET_SECONDS
    try:
        while _step() and time.monotonic() < until:
            pass
    finally:  # what earlier rounds found is reported even if this one fails
        until = time.monotonic() + TIME_BUDGET_SECONDS
        raised_to = raise_incidents(BATCH_SIZE, after=0)
        while raised_to is not None and time.monotonic() < until:
            raised_to = raise_incidents(BATCH_SIZE, after=raised_to)


@transaction.atomic(durable=True)
def _step() -> bool:
    """Compare one batch of every feed; returns whether there is more."""
    leases.lock_until_commit("reconciliation")
    state = _state()
    mirror = Mirror.objects.filter(pk=1).first() or Mirror()  # read first: see `compare_attempt`
    if state.begins_at is None:
        state.begins_at = _first_preparation()
    scope = _scope(state, mirror)
    state.at, state.mirror_as_of = clock.now(), mirror.as_of
    state.save()
    _compare(scope, state.begins_at, mirror)
    return scope.is_cut


def _state() -> ReconciliationState:
    """The stored state; at first, existing rows are left to the full pass."""
    state = ReconciliationState.objects.filter(pk=1).first()
    if state is None:
        state = ReconciliationState(
            pk=1,
            rows_to=_newest(Transaction.objects.all()),
            changes_to=_newest(TransactionChange.objects.all()),
            entries_to=_newest(Entry.objects.all()),
        )
    now = clock.now()
    if state.full_pass_begun_at is None or state.full_pass_begun_at <= now - FULL_PASS_INTERVAL:
        state.full_pass_begun_at, state.full_pass_attempts_to, state.full_pass_rows_to = now, 0, 0
    return state


def _newest(rows: QuerySet[Any]) -> int:
    return rows.aggregate(newest=Max("pk"))["newest"] or 0


def _first_preparation() -> datetime | None:
    """Of what is sent to the provider: while a new team is only set up, payments are still made elsewhere."""
    sent = Operation.objects.exclude(kind__in=local_kinds())
    return sent.order_by("prepared_at").values_list("prepared_at", flat=True).first()


def _scope(state: ReconciliationState, mirror: Mirror) -> ReconciliationScope:
    """Read the next batch of each feed, and advance the state past it."""
    scope = ReconciliationScope()
    state.rows_to = _read_rows(scope, state.rows_to, state.begins_at)
    state.changes_to = _read_changes(scope, state.changes_to)
    state.entries_to = _read_entries(scope, state.entries_to)
    if state.full_pass_attempts_to is not None:
        found, state.full_pass_attempts_to = _next_batch(
            scope, Attempt.objects.all(), state.full_pass_attempts_to
        )
        scope.attempts.update(found)
    if state.full_pass_rows_to is not None:
        state.full_pass_rows_to = _read_all_rows(scope, state.full_pass_rows_to, state)
    _read_pending(scope, state, mirror)
    return scope


def _read_rows(scope: ReconciliationScope, after: int, begins_at: datetime | None) -> int:
    """Add the next outgoing rows since the first operation, and of the day before it.

    Returns where the next batch begins.
    """
    newest = _newest(Transaction.objects.all())
    following = Transaction.objects.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)
    # Limits the number of rows, not the range of ids, which may have wide gaps.
    to = min([newest, *following[ROWS_PER_STEP - 1 : ROWS_PER_STEP]])
    found: list[int] = []
    if begins_at is not None and to > after:
        earliest = begins_at - CLOCK_DIFFERENCE
        rows = Transaction.objects.filter(pk__gt=after, pk__lte=to, occurred_at__gte=earliest)
        outgoing = rows.exclude(direction=INCOMING).order_by("pk").values_list("pk", flat=True)
        found = list(outgoing[:BATCH_SIZE])
    if len(found) == BATCH_SIZE:
        to = found[-1]
    scope.rows.update(found)
    scope.is_cut |= to < newest
    return max(to, after)


def _read_changes(scope: ReconciliationScope, after: int) -> int:
    changes = TransactionChange.objects.filter(pk__gt=after).order_by("pk")
    found = list(changes.values_list("pk", "transaction_id")[:BATCH_SIZE])
    scope.rows.update(row for _, row in found)
    scope.is_cut |= len(found) == BATCH_SIZE
    return found[-1][0] if found else after


def _read_entries(scope: ReconciliationScope, after: int) -> int:
    """Add the attempts of operations that have new audit entries, and unclaimed rows that may look like them."""
    entries = Entry.objects.filter(position__gt=after).order_by("position")
    found = list(entries.values_list("position", "target_type", "target_id")[:BATCH_SIZE])
    touched = {target_uuid(target) for _, kind, target in found if kind == _OPERATION} - {None}
    attempts = _with_operations(Attempt.objects.filter(operation__in=touched))
    scope.attempts.update(attempt.pk for attempt in attempts)
    for attempt in attempts:
        if attempt.closed_at and attempt.balance:
            similar = Comparison.objects.filter(
                attempt__isnull=True,
                currency=attempt.balance,
                amount=attempt.operation.amount,
                occurred_at__range=(attempt.search_from, attempt.search_until),
            )
            scope.rows.update(similar.values_list("transaction_id", flat=True))
    scope.is_cut |= len(found) == BATCH_SIZE
    return found[-1][0] if found else after


def _next_batch(
    scope: ReconciliationScope, rows: QuerySet[Any], after: int | None
) -> tuple[list[int], int | None]:
    """The next batch of ids, and where the following one begins; None at the end."""
    following = rows.filter(pk__gt=after or 0).order_by("pk")
    found = list(following.values_list("pk", flat=True)[:BATCH_SIZE])
    is_cut = len(found) == BATCH_SIZE
    scope.is_cut |= is_cut
    return found, found[-1] if is_cut else None


def _read_all_rows(scope: ReconciliationScope, after: int, state: ReconciliationState) -> int | None:
    """Add the next rows of the full pass and those with a comparison; None when it is complete."""
    to = _read_rows(scope, after, state.begins_at)
    compared = Comparison.objects.filter(transaction__gt=after, transaction__lte=to)
    scope.rows.update(compared.values_list("transaction_id", flat=True))
    return to if to < state.rows_to else None


def _read_pending(scope: ReconciliationScope, state: ReconciliationState, mirror: Mirror) -> None:
    """Add the next pending and missing comparisons, and open attempts that have a transaction.

    No feed reports these: time alone decides them, or a transaction appears that claims to be incoming or
    older than the first operation. Comparisons of attempts are revisited only if the mirror was refreshed
    since the last pass over them, since before its first load all of them may be pending.
    """
    pending_rows = Comparison.objects.filter(result=ReconciliationResult.PENDING, attempt__isnull=True)
    comparisons, state.pending_rows_to = _next_batch(scope, pending_rows, state.pending_rows_to)
    was_synced = mirror.loaded_at is not None and mirror.as_of != state.unlisted_as_of
    if state.unlisted_to is not None or was_synced:
        if state.unlisted_to is None:
            state.unlisted_as_of = mirror.as_of
        attempts = Comparison.objects.filter(MAY_STILL_APPEAR, attempt__isnull=False)
        found, state.unlisted_to = _next_batch(scope, attempts, state.unlisted_to)
        comparisons += found
    scope.take(Comparison.objects.filter(pk__in=comparisons))
    open_attempts = Attempt.objects.filter(closed_at__isnull=True, provider_transaction_id__isnull=False)
    found, state.open_attempts_to = _next_batch(scope, open_attempts, state.open_attempts_to)
    scope.attempts.update(found)


def _compare(scope: ReconciliationScope, begins_at: datetime | None, mirror: Mirror) -> None:
    """Compare everything in the scope, and the attempts and rows that are linked to it."""
    scope.take(_stored_comparisons(scope.attempts, scope.rows))
    rows = Transaction.objects.in_bulk(scope.rows)
    unmatched = _attempts_without_received_id()
    attempts = _attempts(scope.attempts, {row.transaction_id for row in rows.values()})
    claimed_ids = {one.provider_transaction_id for one in attempts if one.provider_transaction_id}
    listed = {row.transaction_id: row for row in Transaction.objects.filter(transaction_id__in=claimed_ids)}
    results: list[Compared] = []
    for one in attempts:
        own = listed.get(one.provider_transaction_id or "")
        results.append((one, own, _compare_attempt(one, own, mirror)))
    others = [row for row in rows.values() if row.transaction_id not in claimed_ids]
    closed = _closed_attempts_near(others)
    for row in others:
        similar = closed.get((row.currency, row.amount), [])
        results.append((None, row, _compare_transaction(row, begins_at, unmatched, similar)))
    concerned = {row.pk for row in (*rows.values(), *listed.values())}
    store_comparisons(_stored_comparisons({one.pk for one in attempts}, concerned), results)


def _compare_attempt(attempt: Attempt, listed: Transaction | None, mirror: Mirror) -> ComparisonResult | None:
    """Compare; if that fails unexpectedly, a mismatch that raises an incident, so that the others go on."""
    try:
        return compare_attempt(attempt, listed, mirror)
    except Exception:
        # Any exception: the round must not stop at one attempt. The next full pass compares it again.
        logger.exception("Reconciliation of attempt %s failed; it is reported as mismatched", attempt.pk)
        operation, found = attempt.operation, [difference(DifferenceCode.NOT_COMPARABLE)]
        amount, result = operation.amount or Decimal(0), ReconciliationResult.MISMATCHED
        return ComparisonResult(result, attempt.started_at, operation.currency, amount, attempt.fee, found)


def _compare_transaction(
    listed: Transaction, begins_at: datetime | None, unmatched: list[Attempt], closed: list[Attempt]
) -> ComparisonResult | None:
    """Compare; if that fails unexpectedly, it counts as unrecognised, so that the others go on."""
    try:
        return compare_transaction(listed, begins_at, unmatched, closed)
    except Exception:
        # Any exception, for the same reason as in `_compare_attempt`.
        logger.exception(
            "Reconciliation of transaction %s failed; it is reported as unrecognised", listed.transaction_id
        )
        found, result = [difference(DifferenceCode.NOT_COMPARABLE)], ReconciliationResult.UNRECOGNISED
        return ComparisonResult(result, listed.occurred_at, listed.currency, listed.amount, listed.fee, found)


def _attempts_without_received_id() -> list[Attempt]:
    """Open attempts for which no response contained a transaction id; a matched one may be another's."""
    may_be_executed = Q(started_at__gt=clock.now() - Attempt.EXECUTION_WINDOW - Attempt.CLOCK_SKEW)
    attempts = Attempt.objects.filter(
        Q(provider_transaction_id__isnull=True) | may_be_executed,
        closed_at__isnull=True,
        id_received_at__isnull=True,
        balance__isnull=False,
    )
    return _with_operations(attempts)


def _closed_attempts_near(rows: Collection[Transaction]) -> Mapping[tuple[str, Decimal], list[Attempt]]:
    """Closed attempts in whose search windows these transactions may lie, by currency and amount.

    One query for each run of transactions without a gap: the full pass brings old and new ones together.
    """
    near: dict[int, Attempt] = {}
    for run in _runs(rows):
        attempts = Attempt.objects.filter(
            closed_at__isnull=False,
            balance__isnull=False,
            watermark_provider_time__gte=run[0].occurred_at - Attempt.EXECUTION_WINDOW - Attempt.CLOCK_SKEW,
            watermark_provider_time__lte=run[-1].occurred_at + Attempt.CLOCK_SKEW,
            operation__amount__in={row.amount for row in run},
        )
        near |= {attempt.pk: attempt for attempt in _with_operations(attempts)}
    grouped: dict[tuple[str, Decimal], list[Attempt]] = defaultdict(list)
    for _, attempt in sorted(near.items()):
        grouped[attempt.balance or "", attempt.operation.amount or Decimal(0)].append(attempt)
    return grouped


def _runs(rows: Iterable[Transaction]) -> list[list[Transaction]]:
    """The transactions by time, divided where there is a gap of more than an hour."""
    runs: list[list[Transaction]] = []
    for row in sorted(rows, key=attrgetter("occurred_at")):
        if not runs or row.occurred_at - runs[-1][-1].occurred_at > _RUN_GAP:
            runs.append([])
        runs[-1].append(row)
    return runs


def _attempts(pks: Collection[int], transaction_ids: Iterable[str]) -> list[Attempt]:
    chosen = Q(pk__in=pks) | Q(provider_transaction_id__in=transaction_ids)
    return _with_operations(Attempt.objects.filter(chosen))


def _with_operations(attempts: QuerySet[Attempt]) -> list[Attempt]:
    """These attempts with their operations.

    If JSON of one cannot be read, each is read alone, and that one without it: a comparison that needs it fails, and
    is reported as every comparison that fails.
    """
    try:
        return list(attempts.select_related("operation"))
    except UNREADABLE as exc:
        logger.warning("An attempt cannot be read (%s), so each is read alone", type(exc).__name__)
    names = {pk: f"Reading attempt {pk} for reconciliation" for pk in attempts.values_list("pk", flat=True)}
    read = run_each_isolated(_with_operation, names, failed=ignore)
    others = attempts.exclude(pk__in=[one.pk for one in read])
    return [*read, *others.select_related("operation").defer(*attempt_json())]


def _with_operation(pk: int) -> Attempt:
    return Attempt.objects.select_related("operation").get(pk=pk)


def _stored_comparisons(attempts: Collection[int], rows: Collection[int]) -> QuerySet[Comparison]:
    return Comparison.objects.filter(Q(attempt__in=attempts) | Q(transaction__in=rows))
