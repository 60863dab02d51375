"""Volumes: sums of a filtered list by currency and direction, and in- and outflow by day and type.

Read from the day totals where they suffice, so the cost grows with days, not with transactions.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from operator import attrgetter
from typing import NamedTuple, TypeVar

from django.db import connection
from django.db.models import QuerySet, Sum
from django.utils.translation import gettext, pgettext_lazy

from backoffice.core.fields import EXACT
from backoffice.ledger.models import DayTotal, Facet, Transaction
from backoffice.ledger.transactions import filters
from backoffice.ledger.transactions.filters import TransactionFilter
from backoffice.ledger.transactions.listing import sum_rows

FacetTotals = tuple[int, int, Decimal, Decimal]


@dataclass(frozen=True)
class DirectionVolume:
    """The sum of one currency in one direction, without fees; an unknown direction is empty."""

    currency: str
    direction: str
    amount: Decimal


@dataclass(frozen=True)
class CurrencyTotal:
    """Money in and out of one currency, without fees. `other` is what has no known direction, in no net."""

    currency: str
    received: Decimal
    sent: Decimal
    other: Decimal

    @property
    def net(self) -> Decimal:
        """Received less sent; negative if more was sent."""
        with localcontext(EXACT):
            return self.received - self.sent


@dataclass(frozen=True)
class VolumeSummary:
    """Exact sums, ordered by currency.

    `missing` is the number of missing transactions, which are not included.
    """

    volumes: list[DirectionVolume]
    missing: int

    @property
    def totals(self) -> list[CurrencyTotal]:
        """The sums as one row for each currency."""
        amounts = {(one.currency, one.direction): one.amount for one in self.volumes}
        return [
            CurrencyTotal(
                currency, *(amounts.get((currency, direction), Decimal(0)) for direction in ("in", "out", ""))
            )
            for currency in dict.fromkeys(one.currency for one in self.volumes)
        ]

    @property
    def has_unknown_directions(self) -> bool:
        """Whether any of it has no known direction."""
        return any(one.direction == "" and one.amount for one in self.volumes)


def volume_summary(criteria: TransactionFilter) -> VolumeSummary | None:
    """The sums for a filter; None if too many rows would have to be read. Raises FilterTooBroadError.

    Day totals cannot be filtered by text, amount or id: then the rows themselves are added up, if they are
    few.
    """
    if not _has_no_totals(criteria):
        return VolumeSummary(_volumes_by_days(criteria), _missing_count(criteria))
    facet_sums = sum_rows(criteria)
    if facet_sums is None:
        return None
    facets = Facet.objects.in_bulk({one.facet_id for one in facet_sums})
    return VolumeSummary(
        _by_direction(facets, ((one.facet_id, one.amount) for one in facet_sums if one.number > one.missing)),
        sum(one.missing for one in facet_sums),
    )


def _volumes_by_days(criteria: TransactionFilter) -> list[DirectionVolume]:
    """Add up the totals of whole UTC days; only the partial days at both ends are read row by row.

    The cost grows with the days of the period times the facets of a day, not with the transactions.
    """
    facets = {facet.pk: facet for facet in filters.known_facets()}
    sums = sums_between(criteria.matching_facets(facets.values()), criteria.since, criteria.until)
    return _by_direction(facets, ((facet_id, amount) for facet_id, _, amount, _ in sums))


def _by_direction(facets: dict[int, Facet], amounts: Iterable[tuple[int, Decimal]]) -> list[DirectionVolume]:
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    with localcontext(EXACT):
        for facet_id, amount in amounts:
            sums[facets[facet_id].currency, facets[facet_id].direction] += amount
    return [
        DirectionVolume(currency, direction, amount) for (currency, direction), amount in sorted(sums.items())
    ]


def _missing_count(criteria: TransactionFilter) -> int:
    return criteria.apply(Transaction.objects.filter(missing_since__isnull=False)).count()


def _has_no_totals(criteria: TransactionFilter) -> bool:
    filters_amounts = (criteria.min_amount, criteria.max_amount) != (None, None)
    return bool(criteria.searches_names or criteria.transaction_id or filters_amounts)


def sums_between(
    facet_ids: list[int], since: datetime | None, until: datetime | None
) -> Iterator[FacetTotals]:
    """Yield facet id, count, amount and fees; a facet may occur repeatedly, and all together are exact.

    PostgreSQL adds up the days exactly and yields each facet once. SQLite has no exact sum, so every day of
    every facet is yielded there.
    """
    first, end = _midnight_after(since), _midnight_before(until)
    if first and end and first > end:  # within one day
        yield from _row_totals(_rows_between(facet_ids, since, until))
        return
    totals = DayTotal.objects.filter(facet__in=facet_ids, count__gt=0).order_by()
    totals = totals.filter(day__gte=first.date()) if first else totals
    totals = totals.filter(day__lt=end.date()) if end else totals
    yield from _summed_totals(totals)
    ends = [(since, first), (end, until)]
    partial_days = [_rows_between(facet_ids, *each) for each in ends if each[0] != each[1]]
    if partial_days:
        yield from _row_totals(partial_days[0].union(*partial_days[1:], all=True))


def _summed_totals(totals: QuerySet[DayTotal]) -> Iterable[FacetTotals]:
    if connection.vendor != "postgresql":
        return totals.values_list("facet_id", "count", "amount", "fee")
    return totals.values("facet_id").values_list("facet_id", Sum("count"), Sum("amount"), Sum("fee"))


def _rows_between(
    facet_ids: list[int], since: datetime | None, until: datetime | None
) -> QuerySet[Transaction, tuple[int, Decimal, Decimal | None]]:
    mirrored = Transaction.objects.filter(missing_since__isnull=True)
    rows = mirrored.filter(facet__in=facet_ids, occurred_at__gte=since, occurred_at__lt=until)
    return rows.order_by().values_list("facet_id", "amount", "fee")


def _row_totals(rows: Iterable[tuple[int, Decimal, Decimal | None]]) -> Iterator[FacetTotals]:
    for facet_id, amount, fee in rows:
        yield facet_id, 1, amount, fee or Decimal(0)


def _midnight_before(moment: datetime | None) -> datetime | None:
    """The start of the moment's UTC day."""
    return moment and datetime.combine(moment.astimezone(UTC).date(), time.min, UTC)


def _midnight_after(moment: datetime | None) -> datetime | None:
    """The end of the moment's UTC day; the moment itself if it is midnight."""
    midnight = _midnight_before(moment)
    return midnight if midnight is None or midnight == moment else midnight + timedelta(days=1)


Key = TypeVar("Key")

FLOW_DAYS = 30
_TYPE_LABELS = {
    "deposit": pgettext_lazy("transaction type", "Deposits"),
    "withdrawal": pgettext_lazy("transaction type", "Withdrawals"),
    "sent": pgettext_lazy("transaction type", "Crypto sent"),
    "transfer": pgettext_lazy("transaction type", "Transfers"),
    "internalTransfer": pgettext_lazy("transaction type", "Internal transfers"),
    "conversion": pgettext_lazy("transaction type", "Conversions"),
}


class FacetDayTotal(NamedTuple):
    """The count and sum of one currency, type and direction on one UTC day."""

    day: date
    currency: str
    type: str
    direction: str
    number: int
    amount: Decimal


@dataclass(frozen=True)
class DailyFlow:
    """One UTC day of one currency, without fees; zero where nothing moved."""

    day: date
    received: Decimal
    sent: Decimal


@dataclass(frozen=True)
class TypeVolume:
    """All transactions of one type in one currency, in either direction.

    `share` is a whole percentage of the largest volume in the currency, for the length of a bar.
    """

    label: str
    count: int
    amount: Decimal
    share: int


@dataclass(frozen=True)
class CurrencyFlow:
    """One currency: its days, oldest first, and its types, largest volume first."""

    currency: str
    days: list[DailyFlow]
    volumes: list[TypeVolume]

    @property
    def received(self) -> Decimal:
        """Total received over all days."""
        return _sum(day.received for day in self.days)

    @property
    def sent(self) -> Decimal:
        """Total sent over all days."""
        return _sum(day.sent for day in self.days)

    @property
    def count(self) -> int:
        """The number of transactions, including those of unknown direction."""
        return sum(volume.count for volume in self.volumes)


def currency_flows(today: date) -> list[CurrencyFlow]:
    """Every currency with a transaction in the last thirty UTC days, today included. One query.

    A transaction counts whatever its status: a failed one that was debited is refunded by a record of its
    own, so leaving out either would show money that never moved. Missing transactions do not count.
    """
    days = [today - timedelta(days=back) for back in reversed(range(FLOW_DAYS))]
    by_currency = _grouped(_day_totals(days[0], today), attrgetter("currency"))
    return [
        CurrencyFlow(currency, _daily_flows(days, totals), _type_volumes(totals))
        for currency, totals in sorted(by_currency.items())
    ]


def _day_totals(first: date, last: date) -> Iterator[FacetDayTotal]:
    totals_of_period = DayTotal.objects.filter(day__gte=first, day__lte=last, count__gt=0).order_by()
    facet = ("facet__currency", "facet__type", "facet__direction")
    return (
        FacetDayTotal._make(row) for row in totals_of_period.values_list("day", *facet, "count", "amount")
    )


def _daily_flows(days: list[date], totals: list[FacetDayTotal]) -> list[DailyFlow]:
    amounts: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    with localcontext(EXACT):
        for total in totals:
            amounts[total.day, total.direction] += total.amount
    return [DailyFlow(day, amounts[day, "in"], amounts[day, "out"]) for day in days]


def _type_volumes(totals: list[FacetDayTotal]) -> list[TypeVolume]:
    types = _grouped(totals, attrgetter("type"))
    amounts = {name: _total_amount(of_type) for name, of_type in types.items()}
    largest = max(amounts.values())
    return [
        TypeVolume(
            _type_label(name), sum(total.number for total in types[name]), amount, _percent(amount, largest)
        )
        for name, amount in sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _type_label(name: str) -> str:
    """A label for the provider's type; the provider's own word for an unknown type."""
    return str(_TYPE_LABELS.get(name, name)) or gettext("Type not provided")


def _percent(amount: Decimal, largest: Decimal) -> int:
    return int(amount * 100 / largest) if largest else 0


def _total_amount(totals: Iterable[FacetDayTotal]) -> Decimal:
    return _sum(total.amount for total in totals)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    with localcontext(EXACT):
        return sum(amounts, Decimal(0))


def _grouped(
    totals: Iterable[FacetDayTotal], key: Callable[[FacetDayTotal], Key]
) -> dict[Key, list[FacetDayTotal]]:
    groups: dict[Key, list[FacetDayTotal]] = defaultdict(list)
    for total in totals:
        groups[key(total)].append(total)
    return groups
