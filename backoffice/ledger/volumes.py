"""What the transactions of a list add up to, by currency and by which way they went."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, localcontext

from backoffice.core.fields import SUMS
from backoffice.ledger import facets
from backoffice.ledger.chosen import Chosen
from backoffice.ledger.mirrored import DayTotal, Transaction


@dataclass(frozen=True)
class Volume:
    """The sum of one currency in one direction, without fees; the direction is empty where nothing tells it."""

    currency: str
    direction: str
    amount: Decimal


def volumes(chosen: Chosen) -> list[Volume]:
    """Exact sums, the currencies in order; none where a text, an amount or an id narrows the list.

    The totals of whole UTC days tell the most of it, and rows are read of the parts of days at both ends alone: so it
    takes no longer for ten million transactions than for the days that they fill.
    """
    if chosen.names_somebody or chosen.transaction_id or (chosen.least, chosen.most) != (None, None):
        return []
    known = {facet.pk: facet for facet in facets.known_facets()}
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    with localcontext(SUMS):
        for facet_id, amount in _amounts(chosen, chosen.facets_of(known.values())):
            sums[known[facet_id].currency, known[facet_id].direction] += amount
    return [Volume(currency, direction, amount) for (currency, direction), amount in sorted(sums.items())]


def _amounts(chosen: Chosen, facet_ids: list[int]) -> Iterator[tuple[int, Decimal]]:
    first, end = _midnight_after(chosen.since), _midnight_before(chosen.until)
    if first and end and first > end:  # within one day
        yield from _of_rows(facet_ids, chosen.since, chosen.until)
        return
    totals = DayTotal.objects.filter(facet__in=facet_ids, count__gt=0).order_by()
    totals = totals.filter(day__gte=first.date()) if first else totals
    totals = totals.filter(day__lt=end.date()) if end else totals
    yield from totals.values_list("facet_id", "amount")
    if first != chosen.since:
        yield from _of_rows(facet_ids, chosen.since, first)
    if end != chosen.until:
        yield from _of_rows(facet_ids, end, chosen.until)


def _of_rows(
    facet_ids: list[int], since: datetime | None, until: datetime | None
) -> Iterator[tuple[int, Decimal]]:
    rows = Transaction.objects.filter(facet__in=facet_ids, occurred_at__gte=since, occurred_at__lt=until)
    yield from rows.order_by().values_list("facet_id", "amount")


def _midnight_before(moment: datetime | None) -> datetime | None:
    """The beginning of the UTC day in which the moment lies."""
    return moment and datetime.combine(moment.astimezone(UTC).date(), time.min, UTC)


def _midnight_after(moment: datetime | None) -> datetime | None:
    """The end of that day; the moment itself if it is the beginning of one."""
    begun = _midnight_before(moment)
    return begun if begun is None or begun == moment else begun + timedelta(days=1)
