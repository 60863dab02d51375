"""The list of the mirror's transactions, page by page, and how many there are."""

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import connection
from django.db.models import Sum

from backoffice.core.pagination import Order, Page, cursor_at, page_of, reader_of
from backoffice.core.period import end_of, start_of
from backoffice.ledger import facets, walking
from backoffice.ledger.chosen import NEWEST_FIRST, Chosen
from backoffice.ledger.mirrored import DayTotal, Transaction
from backoffice.ledger.walking import Summed

COUNTED = 10_000


@dataclass(frozen=True)
class Count:
    """How many transactions: exactly, or about so many."""

    number: int
    is_exact: bool

    @property
    def words(self) -> str:
        """`1,234`, or `About 8,000,000`: what is not exact has no more than two figures."""
        if self.is_exact:
            return f"{self.number:,}"
        return f"About {round(self.number, 2 - len(str(self.number))):,}"


def transaction_page(
    chosen: Chosen, *, order: Order, cursor: str | None, size: int = 50
) -> Page[Transaction]:
    """One page of these transactions in this order; the first one for no cursor or one of another order.

    On PostgreSQL as quick at any depth of any number of transactions (`walking` says why).
    """
    is_walked = _is_walked(chosen)
    read = walking.read(chosen) if is_walked else reader_of(chosen.apply(Transaction.objects.all()))
    page = page_of(read, order=order, cursor=cursor, size=size, among=str(chosen))
    known = {facet.pk for facet in facets.known_facets()}
    if any(row.facet_id not in known for row in page.rows):
        facets.forget()
    return page


def cursor_to(day: date, chosen: Chosen, order: Order) -> str:
    """To where this day begins, on the way from the newest or from the oldest; the order has to be one of time."""
    beginning = end_of(day) if order == NEWEST_FIRST else start_of(day)
    return cursor_at([str(beginning), 0], order, among=str(chosen))


def transaction_count(chosen: Chosen, *, most: int = COUNTED) -> Count:
    """Exactly up to `most`; beyond it, about how many: nothing is ever counted through."""
    facets.forget()  # a count says nothing of the rows, and so not whether the sync has met new ones
    if _is_walked(chosen):
        number, is_all = walking.count(chosen, most=most)
    else:
        number = chosen.apply(Transaction.objects.order_by())[: most + 1].count()
        is_all = number <= most
    return Count(number, is_exact=True) if is_all else Count(max(number, _about(chosen)), is_exact=False)


def sums_of_few(chosen: Chosen, *, most: int = COUNTED) -> list[Summed] | None:
    """What they add up to, row by row; None where there are more than `most`. One facet may come many times."""
    if _is_walked(chosen):
        return walking.sums(chosen, most=most)
    rows = chosen.apply(Transaction.objects.order_by())[: most + 1]
    found = [
        Summed(facet_id, 1, missing=1, amount=Decimal(0)) if missing_since else Summed(facet_id, 1, 0, amount)
        for facet_id, amount, missing_since in rows.values_list("facet_id", "amount", "missing_since")
    ]
    return found if len(found) <= most else None


def _is_walked(chosen: Chosen) -> bool:
    """Not where an id says which transaction it is."""
    return connection.vendor == "postgresql" and not chosen.transaction_id


def _about(chosen: Chosen) -> int:
    """The sums by day know it, but for parts of days; of all other choices the database has an idea."""
    if chosen.names_somebody or (chosen.least, chosen.most) != (None, None):
        return _estimated(chosen)
    totals = DayTotal.objects.filter(facet__in=chosen.facets_of(facets.known_facets()))
    if chosen.since:
        totals = totals.filter(day__gte=chosen.since.date())
    if chosen.until:
        totals = totals.filter(day__lte=chosen.until.date())
    return totals.aggregate(count=Sum("count"))["count"] or 0


def _estimated(chosen: Chosen) -> int:
    """By the statistics that PostgreSQL keeps; SQLite keeps none."""
    if connection.vendor != "postgresql":
        return 0
    plan = json.loads(chosen.apply(Transaction.objects.order_by()).explain(format="json"))
    return int(plan[0]["Plan"]["Plan Rows"])
