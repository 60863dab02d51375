"""What the transactions of a list add up to, by currency and by which way they went."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, localcontext

from django.db import connection
from django.db.models import QuerySet, Sum

from backoffice.core.fields import SUMS
from backoffice.ledger import facets
from backoffice.ledger.chosen import Chosen
from backoffice.ledger.listing import sums_of_few
from backoffice.ledger.mirrored import DayTotal, Facet, Transaction

Sums = tuple[int, int, Decimal, Decimal]


@dataclass(frozen=True)
class Volume:
    """The sum of one currency in one direction, without fees; the direction is empty where nothing tells it."""

    currency: str
    direction: str
    amount: Decimal


@dataclass(frozen=True)
class Summary:
    """Exact sums, the currencies in order. What the service lists no more is left out of them, so many."""

    volumes: list[Volume]
    left_out: int


def summary(chosen: Chosen) -> Summary | None:
    """None where rows would have to be read through, and there are too many of them. Raises TooWideError.

    The totals of days tell no text, amount or id: there the rows themselves are added up, where they are few.
    """
    if not _has_no_totals(chosen):
        return Summary(_of_days(chosen), _missing(chosen))
    found = sums_of_few(chosen)
    if found is None:
        return None
    known = Facet.objects.in_bulk({one.facet_id for one in found})
    return Summary(
        _by_direction(known, ((one.facet_id, one.amount) for one in found if one.number > one.missing)),
        sum(one.missing for one in found),
    )


def _of_days(chosen: Chosen) -> list[Volume]:
    """The totals of whole UTC days tell the most of it, and rows are read of the parts of days at both ends alone: so
    it takes no longer for ten million transactions than for the days that they fill, times the facets of a day.
    """
    known = {facet.pk: facet for facet in facets.known_facets()}
    sums = sums_between(chosen.facets_of(known.values()), chosen.since, chosen.until)
    return _by_direction(known, ((facet_id, amount) for facet_id, _, amount, _ in sums))


def _by_direction(known: dict[int, Facet], amounts: Iterable[tuple[int, Decimal]]) -> list[Volume]:
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    with localcontext(SUMS):
        for facet_id, amount in amounts:
            sums[known[facet_id].currency, known[facet_id].direction] += amount
    return [Volume(currency, direction, amount) for (currency, direction), amount in sorted(sums.items())]


def _missing(chosen: Chosen) -> int:
    return chosen.apply(Transaction.objects.filter(missing_since__isnull=False)).count()


def _has_no_totals(chosen: Chosen) -> bool:
    is_of_some_amounts = (chosen.least, chosen.most) != (None, None)
    return bool(chosen.names_somebody or chosen.transaction_id or is_of_some_amounts)


def sums_between(facet_ids: list[int], since: datetime | None, until: datetime | None) -> Iterator[Sums]:
    """Facet, number, amount and fees; a facet comes many times, and all together are exact.

    PostgreSQL adds the days up by itself, exactly, and tells each facet once; SQLite knows no exact sum, so there every
    day of every facet is told.
    """
    first, end = _midnight_after(since), _midnight_before(until)
    if first and end and first > end:  # within one day
        yield from _of_rows(facet_ids, since, until)
        return
    totals = DayTotal.objects.filter(facet__in=facet_ids, count__gt=0).order_by()
    totals = totals.filter(day__gte=first.date()) if first else totals
    totals = totals.filter(day__lt=end.date()) if end else totals
    yield from _added_up(totals)
    if first != since:
        yield from _of_rows(facet_ids, since, first)
    if end != until:
        yield from _of_rows(facet_ids, end, until)


def _added_up(totals: QuerySet[DayTotal]) -> Iterable[Sums]:
    if connection.vendor != "postgresql":
        return totals.values_list("facet_id", "count", "amount", "fee")
    return totals.values("facet_id").values_list("facet_id", Sum("count"), Sum("amount"), Sum("fee"))


def _of_rows(facet_ids: list[int], since: datetime | None, until: datetime | None) -> Iterator[Sums]:
    listed = Transaction.objects.filter(missing_since__isnull=True)
    rows = listed.filter(facet__in=facet_ids, occurred_at__gte=since, occurred_at__lt=until)
    for facet_id, amount, fee in rows.order_by().values_list("facet_id", "amount", "fee"):
        yield facet_id, 1, amount, fee or Decimal(0)


def _midnight_before(moment: datetime | None) -> datetime | None:
    """The beginning of the UTC day in which the moment lies."""
    return moment and datetime.combine(moment.astimezone(UTC).date(), time.min, UTC)


def _midnight_after(moment: datetime | None) -> datetime | None:
    """The end of that day; the moment itself if it is the beginning of one."""
    begun = _midnight_before(moment)
    return begun if begun is None or begun == moment else begun + timedelta(days=1)
