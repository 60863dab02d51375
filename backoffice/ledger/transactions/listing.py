"""The transaction list of the mirror: one page, and how many transactions match."""

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import connection
from django.db.models import Sum

from backoffice.core.web.forms import end_of_day, start_of_day
from backoffice.core.web.pagination import Order, Page, cursor_at, paginate, queryset_reader
from backoffice.ledger.models import DayTotal, Transaction
from backoffice.ledger.transactions import filters, query_planner
from backoffice.ledger.transactions.filters import NEWEST_FIRST, TransactionFilter
from backoffice.ledger.transactions.query_planner import FacetSum

MAX_EXACT_COUNT = 10_000


@dataclass(frozen=True)
class TransactionCount:
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
    chosen: TransactionFilter, *, order: Order, cursor: str | None, size: int = 50
) -> Page[Transaction]:
    """One page of these transactions in this order; the first one for no cursor or one of another order.

    On PostgreSQL as quick at any depth of any number of transactions (`walking` says why).
    """
    is_walked = _uses_planner(chosen)
    read = (
        query_planner.planned_reader(chosen)
        if is_walked
        else queryset_reader(chosen.apply(Transaction.objects.all()))
    )
    page = paginate(read, order=order, cursor=cursor, size=size, among=str(chosen))
    known = {facet.pk for facet in filters.known_facets()}
    if any(row.facet_id not in known for row in page.rows):
        filters.forget_facets()
    return page


def cursor_at_day(day: date, chosen: TransactionFilter, order: Order) -> str:
    """To where this day begins, on the way from the newest or from the oldest; the order has to be one of time."""
    beginning = end_of_day(day) if order == NEWEST_FIRST else start_of_day(day)
    return cursor_at([str(beginning), 0], order, among=str(chosen))


def transaction_count(chosen: TransactionFilter, *, most: int = MAX_EXACT_COUNT) -> TransactionCount:
    """Exactly up to `most`; beyond it, about how many: nothing is ever counted through."""
    filters.forget_facets()  # a count says nothing of the rows, and so not whether the sync has met new ones
    if _uses_planner(chosen):
        number, is_all = query_planner.count_matches(chosen, most=most)
    else:
        number = chosen.apply(Transaction.objects.order_by())[: most + 1].count()
        is_all = number <= most
    return (
        TransactionCount(number, is_exact=True)
        if is_all
        else TransactionCount(max(number, _approximate_count(chosen)), is_exact=False)
    )


def sum_rows(chosen: TransactionFilter, *, most: int = MAX_EXACT_COUNT) -> list[FacetSum] | None:
    """What they add up to, row by row; None where there are more than `most`. One facet may come many times."""
    if _uses_planner(chosen):
        return query_planner.sum_matches(chosen, most=most)
    rows = chosen.apply(Transaction.objects.order_by())[: most + 1]
    found = [
        FacetSum(facet_id, 1, missing=1, amount=Decimal(0))
        if missing_since
        else FacetSum(facet_id, 1, 0, amount)
        for facet_id, amount, missing_since in rows.values_list("facet_id", "amount", "missing_since")
    ]
    return found if len(found) <= most else None


def _uses_planner(chosen: TransactionFilter) -> bool:
    """Not where an id says which transaction it is."""
    return connection.vendor == "postgresql" and not chosen.transaction_id


def _approximate_count(chosen: TransactionFilter) -> int:
    """The sums by day know it, but for parts of days; of all other choices the database has an idea."""
    if chosen.names_somebody or (chosen.least, chosen.most) != (None, None):
        return _planner_estimate(chosen)
    totals = DayTotal.objects.filter(facet__in=chosen.facets_of(filters.known_facets()))
    if chosen.since:
        totals = totals.filter(day__gte=chosen.since.date())
    if chosen.until:
        totals = totals.filter(day__lte=chosen.until.date())
    return totals.aggregate(count=Sum("count"))["count"] or 0


def _planner_estimate(chosen: TransactionFilter) -> int:
    """By the statistics that PostgreSQL keeps; SQLite keeps none."""
    if connection.vendor != "postgresql":
        return 0
    plan = json.loads(chosen.apply(Transaction.objects.order_by()).explain(format="json"))
    return int(plan[0]["Plan"]["Plan Rows"])
