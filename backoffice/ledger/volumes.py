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
from backoffice.ledger.mirrored import DayTotal, Transaction

Sums = tuple[int, int, Decimal, Decimal]


@dataclass(frozen=True)
class Volume:
    """The sum of one currency in one direction, without fees; the direction is empty where nothing tells it."""

    currency: str
    direction: str
    amount: Decimal


def volumes(chosen: Chosen) -> list[Volume]:
    """Exact sums, the currencies in order; none where a text, an amount or an id narrows the list.

    What the service lists no more stands in the list and does not count (`left_out`).
    The totals of whole UTC days tell the most of it, and rows are read of the parts of days at both ends alone: so it
    takes no longer for ten million transactions than for the days that they fill, times the facets of a day.
    """
    if _has_no_sums(chosen):
        return []
    known = {facet.pk: facet for facet in facets.known_facets()}
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    with localcontext(SUMS):
        chosen_facets = chosen.facets_of(known.values())
        for facet_id, _, amount, _ in sums_between(chosen_facets, chosen.since, chosen.until):
            sums[known[facet_id].currency, known[facet_id].direction] += amount
    return [Volume(currency, direction, amount) for (currency, direction), amount in sorted(sums.items())]


def left_out(chosen: Chosen) -> int:
    """How many of these transactions the service lists no more, so that none of `volumes` has them."""
    if _has_no_sums(chosen):
        return 0
    return chosen.apply(Transaction.objects.filter(missing_since__isnull=False)).count()


def _has_no_sums(chosen: Chosen) -> bool:
    """Whether rows would have to be read through."""
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
