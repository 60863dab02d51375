"""The transaction list of the mirror: one page of it, and the number of matching transactions."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal

from django.db import connection
from django.db.models import Q, Sum
from django.utils.translation import gettext

from backoffice.core.web.formatting import format_count
from backoffice.core.web.forms import end_of_day, start_of_day
from backoffice.core.web.pagination import PAGE_SIZE, Order, Page, cursor_at, paginate, queryset_reader
from backoffice.ledger.models import CONVERSION, DayTotal, Transaction
from backoffice.ledger.transactions import filters, query_planner
from backoffice.ledger.transactions.filters import NEWEST_FIRST, TransactionFilter
from backoffice.ledger.transactions.query_planner import FacetSum

MAX_EXACT_COUNT = 10_000
CONVERSION_SPAN = timedelta(minutes=1)
"""The provider records both sides of a conversion together; they are at most this far apart."""
_ONE_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class TransactionCount:
    """A number of transactions, exact or estimated."""

    number: int
    is_exact: bool

    @property
    def text(self) -> str:
        """`1,234`, or `About 8,000,000`: an estimate is rounded to two significant digits."""
        if self.is_exact:
            return format_count(self.number)
        rounded = round(self.number, 2 - len(str(self.number)))
        return gettext("About {number}").format(number=format_count(rounded))


def transaction_page(
    criteria: TransactionFilter, *, order: Order, cursor: str | None, size: int = PAGE_SIZE
) -> Page[Transaction]:
    """One page of the matching transactions.

    An empty cursor, or one of another order or filter, gives the first page. Raises FilterTooBroadError.

    On PostgreSQL the time does not grow with the number of transactions or the depth of the page (see
    `query_planner`).
    """
    uses_planner = _uses_planner(criteria)
    read = (
        query_planner.planned_reader(criteria)
        if uses_planner
        else queryset_reader(criteria.apply(Transaction.objects.all()))
    )
    page = paginate(read, order=order, cursor=cursor, size=size, selection=str(criteria))
    known = {facet.pk for facet in filters.known_facets()}
    if any(row.facet_id not in known for row in page.rows):
        filters.forget_facets()
    return page


def cursor_at_day(day: date, criteria: TransactionFilter, order: Order) -> str:
    """The cursor at the start of this day in reading direction. The order must be one by time."""
    boundary = end_of_day(day) if order == NEWEST_FIRST else start_of_day(day)
    return cursor_at([str(boundary), 0], order, selection=str(criteria))


def transaction_count(criteria: TransactionFilter, *, at_most: int = MAX_EXACT_COUNT) -> TransactionCount:
    """The exact number up to `at_most`, otherwise an estimate: matches beyond `at_most` are never counted.

    Raises FilterTooBroadError.
    """
    filters.forget_facets()  # a count reads no rows, so it cannot notice that the sync added facets
    if _uses_planner(criteria):
        number, is_complete = query_planner.count_matches(criteria, at_most=at_most)
    else:
        number = criteria.apply(Transaction.objects.order_by())[: at_most + 1].count()
        is_complete = number <= at_most
    return (
        TransactionCount(number, is_exact=True)
        if is_complete
        else TransactionCount(max(number, _approximate_count(criteria)), is_exact=False)
    )


def sold_sides(found: Iterable[Transaction]) -> dict[str, str]:
    """For each bought side of a conversion: the transaction id of its sold side. Both by transaction id.

    The bought side reports what was sold, but not the other id. The sold side is the nearest in time with
    that amount; without one, or with two equally near, the bought side is left out. At most one query.
    """
    bought = [one for one in found if one.type == CONVERSION and one.direction == "in" and one.from_amount]
    if not bought:
        return {}
    conditions = Q()
    for one in bought:
        conditions |= Q(
            currency=one.from_currency,
            amount=one.from_amount,
            occurred_at__range=(one.occurred_at - CONVERSION_SPAN, one.occurred_at + CONVERSION_SPAN),
        )
    sold = list(Transaction.objects.filter(conditions, type=CONVERSION, direction="out").order_by())
    nearest = {one.transaction_id: _nearest_sold_side(one, sold) for one in bought}
    return {bought_id: sold_id for bought_id, sold_id in nearest.items() if sold_id}


def _nearest_sold_side(bought: Transaction, sold: list[Transaction]) -> str:
    """Its transaction id; empty without one, or with two equally near."""
    distances = sorted(
        (abs(one.occurred_at - bought.occurred_at), one.transaction_id)
        for one in sold
        if (one.currency, one.amount) == (bought.from_currency, bought.from_amount)
        and abs(one.occurred_at - bought.occurred_at) <= CONVERSION_SPAN
    )
    is_ambiguous = len(distances) > 1 and distances[0][0] == distances[1][0]
    return "" if not distances or is_ambiguous else distances[0][1]


def sum_rows(criteria: TransactionFilter, *, at_most: int = MAX_EXACT_COUNT) -> list[FacetSum] | None:
    """Amounts of the matching transactions by facet; None if there are more than `at_most`.

    A facet may occur repeatedly. Raises FilterTooBroadError.
    """
    if _uses_planner(criteria):
        return query_planner.sum_matches(criteria, at_most=at_most)
    rows = criteria.apply(Transaction.objects.order_by())[: at_most + 1]
    found = [
        FacetSum(facet_id, 1, missing=1, amount=Decimal(0))
        if missing_since
        else FacetSum(facet_id, 1, 0, amount)
        for facet_id, amount, missing_since in rows.values_list("facet_id", "amount", "missing_since")
    ]
    return found if len(found) <= at_most else None


def _uses_planner(criteria: TransactionFilter) -> bool:
    """Not for a filter by transaction id, which the unique index answers at once."""
    return connection.vendor == "postgresql" and not criteria.transaction_id


def _approximate_count(criteria: TransactionFilter) -> int:
    """Estimate from the totals of all UTC days that the period touches, or from the database's planner."""
    if criteria.searches_names or (criteria.min_amount, criteria.max_amount) != (None, None):
        return _planner_estimate(criteria)
    totals = DayTotal.objects.filter(facet__in=criteria.matching_facets(filters.known_facets()))
    if criteria.since:
        totals = totals.filter(day__gte=criteria.since.astimezone(UTC).date())
    if criteria.until:
        totals = totals.filter(day__lte=(criteria.until - _ONE_TICK).astimezone(UTC).date())
    return totals.aggregate(count=Sum("count"))["count"] or 0


def _planner_estimate(criteria: TransactionFilter) -> int:
    """The estimate of PostgreSQL's planner; 0 on SQLite, which keeps no statistics."""
    if connection.vendor != "postgresql":
        return 0
    plan = json.loads(criteria.apply(Transaction.objects.order_by()).explain(format="json"))
    return int(plan[0]["Plan"]["Plan Rows"])
