"""Reads of the reconciliation: the comparisons, the sums by day, the counts, and how current they are."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum

from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.fields import EXACT
from backoffice.ledger.mirror.state import synced_until
from backoffice.ledger.models import CONVERSION, DayTotal
from backoffice.operations import permissions
from backoffice.operations.lifecycle.incidents import open_incidents
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reconciliation import (
    Comparison,
    ReconciliationResult,
    ReconciliationState,
    ReconciliationTotal,
)
from backoffice.operations.reconciliation.rules import INCOMING
from backoffice.operations.states import NEEDS_ATTENTION

REQUIRED_PERMISSIONS = (permissions.VIEW, "ledger.view_transaction")
"""Reconciliation shows both operations and the provider's transactions, so a reader needs both permissions."""
DAYS_ZONE = ZoneInfo("UTC")
"""Days are UTC for every reader, since the totals are stored by UTC day."""
NEWEST_COMPARISONS_FIRST = ("-occurred_at", "-id")
DAYS_SHOWN = timedelta(days=13)  # before the last day
DAYS_OF_PERIOD_SHOWN = timedelta(days=30)  # the same, if the first day is chosen: a whole month
CACHED_SECONDS = 5.0
UNMATCHED = "unmatched"
"""A filter, not a result: every result but `matched`."""
# A list, so that the index by result is used: among many comparisons, few are not matched.
_UNMATCHED_RESULTS = [
    result.value for result in ReconciliationResult if result != ReconciliationResult.MATCHED
]
_LAST_INCIDENT = Incident.objects.filter(
    transaction=OuterRef("transaction"), followed_by__isnull=True
).order_by()


@dataclass(frozen=True)
class ReconciliationFilter:
    """The filters of the list and the totals; empty means all. Both days are UTC and inclusive."""

    result: str = ""
    currency: str = ""
    since: date | None = None
    until: date | None = None

    def comparisons(self) -> QuerySet[Comparison]:
        """The filtered comparisons, with their subjects and the last incident of unrecognised ones."""
        found = Comparison.objects.select_related("attempt__operation", "transaction").annotate(
            incident=Subquery(_LAST_INCIDENT.values("pk")),
            noted_at=Subquery(_LAST_INCIDENT.values("acknowledged_at")),
            noted_by=Subquery(_LAST_INCIDENT.values("acknowledged_by__full_name")),
            note=Subquery(_LAST_INCIDENT.values("note")),
        )
        if self.result:
            found = found.filter(result__in=self.results)
        if self.currency:
            found = found.filter(currency=self.currency)
        if self.since:
            found = found.filter(occurred_at__gte=_midnight(self.since))
        if self.until:
            found = found.filter(occurred_at__lt=_midnight(self.until + timedelta(days=1)))
        return found

    @property
    def results(self) -> list[str]:
        """The results that it lets through."""
        return _UNMATCHED_RESULTS if self.result == UNMATCHED else [self.result]

    def totals_of_results(self) -> QuerySet[ReconciliationTotal]:
        """The totals of the filtered results, days and currency."""
        return self.totals().filter(result__in=self.results) if self.result else self.totals()

    def totals(self) -> QuerySet[ReconciliationTotal]:
        """The totals of the filtered days and currency, of every result."""
        chosen = {"currency": self.currency, "day__gte": self.since, "day__lte": self.until}
        return ReconciliationTotal.objects.filter(**{name: value for name, value in chosen.items() if value})


def unclaimed_between(since: datetime, until: datetime) -> QuerySet[Comparison]:
    """The provider's outgoing transactions of this time that belong to no attempt, the newest first."""
    unclaimed = ReconciliationFilter().comparisons().filter(attempt=None)
    return unclaimed.filter(occurred_at__range=(since, until)).order_by(*NEWEST_COMPARISONS_FIRST)


@dataclass
class ComparisonTotal:
    count: int = 0
    amount: Decimal = Decimal(0)

    def add(self, count: int, amount: Decimal) -> None:
        self.count += count
        self.amount = EXACT.add(self.amount, amount)


@dataclass
class ReconciliationDay:
    """One UTC day of one currency: a total for each result, and the incoming transactions."""

    day: date
    currency: str
    of: dict[str, ComparisonTotal] = field(
        default_factory=lambda: {result.value: ComparisonTotal() for result in ReconciliationResult}
    )
    incoming: ComparisonTotal = field(default_factory=ComparisonTotal)

    @property
    def cells(self) -> list[tuple[str, str, ComparisonTotal]]:
        """Result, its label and its total, in the order of the headings."""
        return [(result.value, str(result.label), self.of[result]) for result in ReconciliationResult]


def daily_totals(
    chosen: ReconciliationFilter, begins_at: datetime | None, today: date
) -> list[ReconciliationDay]:
    """The filtered totals of the last two weeks of the period, or of 31 days if its first day is chosen; since the
    first operation, the newest day first. A period that ends in the future is shown until today.
    """
    if begins_at is None:
        return []
    until = min(chosen.until or today, today)
    length = DAYS_OF_PERIOD_SHOWN if chosen.since else DAYS_SHOWN
    since = max(until - length, begins_at.astimezone(UTC).date(), chosen.since or date.min)
    shown = replace(chosen, since=since, until=until)
    lines: dict[tuple[date, str], ReconciliationDay] = {}

    def line(day: date, currency: str) -> ReconciliationDay:
        return lines.setdefault((day, currency), ReconciliationDay(day, currency))

    for total in shown.totals().order_by():
        line(total.day, total.currency).of[total.result].add(total.count, total.amount)
    for day, currency, count, amount in _incoming_totals(shown):
        line(day, currency).incoming.add(count, amount)
    return sorted(lines.values(), key=lambda one: (-one.day.toordinal(), one.currency))


def _incoming_totals(shown: ReconciliationFilter) -> QuerySet[DayTotal, tuple[date, str, int, Decimal]]:
    """Totals of incoming transactions, as the mirror keeps them.

    The bought side of a conversion is not incoming: it comes from the merchant's own balance.
    """
    within = DayTotal.objects.filter(
        day__gte=shown.since, day__lte=shown.until, facet__direction=INCOMING, count__gt=0
    ).exclude(facet__type=CONVERSION)
    if shown.currency:
        within = within.filter(facet__currency=shown.currency)
    return within.order_by().values_list("day", "facet__currency", "count", "amount")


def result_counts(chosen: ReconciliationFilter) -> list[tuple[str, str, int]]:
    """Result, label and count of each, ignoring the result that the list is filtered by."""
    found = dict(chosen.totals().order_by().values_list("result").annotate(number=Sum("count")))
    return [(result.value, str(result.label), found.get(result.value, 0)) for result in ReconciliationResult]


def reconciliation_state() -> ReconciliationState:
    """The progress of reconciliation; empty before the first round."""
    return ReconciliationState.objects.filter(pk=1).first() or ReconciliationState()


def compared_up_to() -> datetime | None:
    """Everything listed up to this moment is compared; None before the first full load of the mirror."""
    synced, compared = synced_until(), reconciliation_state().mirror_as_of
    return min(synced, compared) if synced and compared else None


def unrecognised_count() -> int:
    """How many unrecognised transactions have an incident that is not acknowledged."""
    open_ones = Incident.objects.filter(transaction__isnull=False, acknowledged_at__isnull=True)
    return open_ones.order_by().values("transaction").distinct().count()


@dataclass(frozen=True)
class CaseCounts:
    """The unrecognised transactions, and everything in reconciliation that waits for people."""

    unrecognised: int
    open_cases: int


def cached_unrecognised_count() -> int:
    """`unrecognised_count` for display on every page, at most `CACHED_SECONDS` old."""
    return _cached_counts().unrecognised


def cached_open_case_count() -> int:
    """How much of reconciliation waits for people: open incidents, changes of accounts with break-glass, and
    operations with an unknown outcome.

    At most `CACHED_SECONDS` old.
    """
    return _cached_counts().open_cases


def _cached_counts() -> CaseCounts:
    return cached_in_process("reconciliation-counts", _case_counts, CACHED_SECONDS)


def _case_counts() -> CaseCounts:
    unknown = Operation.objects.filter(status__in=NEEDS_ATTENTION).count()
    incidents = open_incidents().aggregate(
        count=Count("pk"), unrecognised=Count("transaction", distinct=True)
    )
    changes = BreakGlassChange.objects.unacknowledged().count()
    return CaseCounts(incidents["unrecognised"], incidents["count"] + changes + unknown)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time_of_day.min, tzinfo=UTC)
