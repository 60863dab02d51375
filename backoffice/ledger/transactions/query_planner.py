"""Find one page among ten million transactions as fast as among ten thousand, on PostgreSQL.

An index serves either a filter or an order. A rare status in time order, or large amounts of one month, would
make the database read or sort most of the table. The planner avoids that:

1. **Words become keys.** Currency, type, status and direction occur in a few hundred combinations (facets),
   names in far fewer combinations than transactions (`ledger_names`). Any filter by words or text becomes a
   list of facets or name combinations before the large table is touched.
2. **A page is a merge.** For each key an index holds its transactions in list order. The first fifty of each
   key together contain the first fifty of all, on the last page as on the first.
3. **What no index orders is bounded.** An amount within a period, or a text and a status, need two indexes at
   once. If one condition matches at most `MAX_GATHERED` rows, those are fetched and sorted. Otherwise the
   list is scanned in order; after `MAX_SCANNED` rows the page ends early and the next page continues there,
   so nothing is lost or repeated. A probe of the next `PROBED_ROWS` comes first, since it finds frequent
   matches without further queries. Every index covers all columns that are compared, so no row is fetched
   that is not shown.
4. **The rest is cancelled.** A query that takes longer than `TIMEOUT_SECONDS` raises FilterTooBroadError.

Each scan names the columns of its index in index order with its own ORDER BY and LIMIT, so PostgreSQL reads
it in that order and no further, whatever it estimates.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import NamedTuple

from django.db import OperationalError, connection, transaction
from django.utils.translation import gettext
from psycopg.errors import QueryCanceled

from backoffice.core.web.pagination import Order, Position, RowBatch, RowReader
from backoffice.ledger.models import Facet, Transaction
from backoffice.ledger.transactions import filters
from backoffice.ledger.transactions.filters import NEWEST_FIRST, TransactionFilter
from backoffice.ledger.transactions.names import NameMatch, match_names, match_names_per_row
from backoffice.ledger.transactions.sql import (
    BoundedScan,
    IndexKeys,
    IndexScan,
    Sql,
    fetch_rows,
    order_by,
    order_column,
    select,
    subquery,
)

PROBED_ROWS, MAX_GATHERED, MAX_SCANNED = 2_000, 10_000, 30_000
TIMEOUT_SECONDS = 5.0
_LARGEST_FIRST: Order = ("-amount", "-id")
_TYPES = {"occurred_at": "timestamptz", "amount": "numeric", "id": "bigint"}


class FacetSum(NamedTuple):
    """For one facet: the number of transactions, how many of them are missing, and the sum of the others."""

    facet_id: int
    number: int
    missing: int
    amount: Decimal


class CandidateSet(NamedTuple):
    """Rows that include every match unless too many, and the conditions to check for each row."""

    rows: Sql
    row_conditions: list[Sql]
    scan: BoundedScan | None = None

    @property
    def is_complete(self) -> bool:
        """False if a bounded scan ends before the transactions do."""
        return self.scan is None or self.scan.end(NEWEST_FIRST) is None


class FilterTooBroadError(Exception):
    """The filter has no fast query. The message suggests a narrower one."""


class AccessPaths:
    """The index scans for a filter: by time or amount, over all rows or per facet, or by few names."""

    def __init__(self, criteria: TransactionFilter, names: NameMatch | None) -> None:
        ids = criteria.matching_facets(filters.known_facets())
        self.is_empty = not ids
        period, amounts = _period(criteria), _amounts(criteria)
        facets = [Sql("facet_id = ANY(%s)", [ids])] if criteria.facet_values else []
        name_conditions = [names.row_condition] if names else []
        facet_keys = IndexKeys("facet_id", "integer", ids) if facets else None
        self.by_time = IndexScan(NEWEST_FIRST, period, [*amounts, *name_conditions], facet_keys)
        self.by_amount = IndexScan(_LARGEST_FIRST, amounts, [*period, *name_conditions], facet_keys)
        self.by_name = _name_scan(names, period, [*amounts, *facets]) if names else None
        self._in_time_order = (
            self.by_time
            if name_conditions or not facets
            else IndexScan(NEWEST_FIRST, period, [*amounts, *facets])
        )
        self._small = [
            (self.by_name, True),
            (self.by_amount, bool(amounts)),
            (self.by_time, bool(facets or period)),
        ]

    def exact_scan(self, order: Order) -> IndexScan | None:
        """The scan whose index alone gives the matching rows in this order, if there is one."""
        scans = (self.by_name, self.by_time, self.by_amount)
        return next(
            (
                scan
                for scan in scans
                if scan and not scan.row_conditions and order_column(scan.order) == order_column(order)
            ),
            None,
        )

    def small_scan(self, order: Order) -> IndexScan | None:
        """A scan that yields few rows, if there is one; never the one in list order, which `bounded_scan` reads."""
        scans = (
            scan
            for scan, is_narrow in self._small
            if scan and is_narrow and scan is not self._in_order(order)
        )
        return next((scan for scan in scans if _is_small(scan)), None)

    def bounded_scan(self, order: Order, limit: int, *extra_conditions: Sql) -> BoundedScan:
        """The next rows in this order, at most `limit` of them."""
        scan = self._in_order(order)
        return BoundedScan(scan.merged(order, limit, *extra_conditions), scan.row_conditions, limit)

    def _in_order(self, order: Order) -> IndexScan:
        return self.by_amount if order_column(order) == "amount" else self._in_time_order


@contextmanager
def query_timeout() -> Iterator[None]:
    """Cancel queries that take longer than `TIMEOUT_SECONDS`. Raises FilterTooBroadError."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('statement_timeout', %s, true)", [f"{TIMEOUT_SECONDS * 1000:.0f}"]
            )
            yield
    except OperationalError as exc:
        if not isinstance(exc.__cause__, QueryCanceled):
            raise
        raise FilterTooBroadError(
            gettext("The search took too long. Choose a shorter period, or one currency.")
        ) from exc


def planned_reader(criteria: TransactionFilter) -> RowReader[Transaction]:
    """A reader that returns the first matching transactions after a position. It raises FilterTooBroadError."""

    def read_batch(order: Order, position: Position | None, limit: int) -> RowBatch[Transaction]:
        found = _next_rows(criteria, order, position, limit)
        if _facet_count(found.rows) == len(filters.known_facets()):
            return found
        filters.forget_facets()  # the sync has added facets
        return _next_rows(criteria, order, position, limit)

    return read_batch


def count_matches(criteria: TransactionFilter, *, at_most: int) -> tuple[int, bool]:
    """The number of matches, and whether it is complete.

    Counting stops beyond `at_most` and at the end of a bounded scan. Raises FilterTooBroadError.
    """
    with query_timeout():
        paths = AccessPaths(criteria, match_names(criteria))
        return (0, True) if paths.is_empty else _count_candidates(paths, at_most)


def sum_matches(criteria: TransactionFilter, *, at_most: int) -> list[FacetSum] | None:
    """Sums by facet; None if counting would stop before all matches are counted. Raises FilterTooBroadError."""
    with query_timeout():
        paths = AccessPaths(criteria, match_names(criteria))
        if paths.is_empty:
            return []
        candidates = _candidates(paths, at_most)
        found = _sum_rows(candidates.rows, candidates.row_conditions, at_most)
        return found if sum(one.number for one in found) <= at_most and candidates.is_complete else None


def _count_candidates(paths: AccessPaths, at_most: int) -> tuple[int, bool]:
    candidates = _candidates(paths, at_most)
    number = _count_rows(candidates.rows, candidates.row_conditions, at_most)
    return number, number <= at_most and candidates.is_complete


def _candidates(paths: AccessPaths, at_most: int) -> CandidateSet:
    exact = (
        paths.exact_scan(NEWEST_FIRST) or paths.exact_scan(_LARGEST_FIRST) or paths.small_scan(NEWEST_FIRST)
    )
    if exact is not None:
        return CandidateSet(exact.rows(exact.order, max(at_most, MAX_GATHERED) + 1), exact.row_conditions)
    scan = paths.bounded_scan(NEWEST_FIRST, MAX_SCANNED)
    return CandidateSet(scan.rows, scan.row_conditions, scan)


def _next_rows(
    criteria: TransactionFilter, order: Order, position: Position | None, limit: int
) -> RowBatch[Transaction]:
    names, after_conditions = match_names_per_row(criteria), _after_position(order, position)
    paths = AccessPaths(criteria, names)
    if paths.is_empty:
        return RowBatch([])
    if exact := paths.exact_scan(order):
        return RowBatch(_fetch_transactions(exact.rows(order, limit, *after_conditions), [], order, limit))
    with query_timeout():
        probe = _scan_rows(paths, order, PROBED_ROWS, after_conditions, limit)
        return (
            probe if probe.cut_at is None else _search_rows(criteria, names, order, after_conditions, limit)
        )


def _search_rows(
    criteria: TransactionFilter,
    names: NameMatch | None,
    order: Order,
    after_conditions: list[Sql],
    limit: int,
) -> RowBatch[Transaction]:
    """Search with the name combinations resolved, after a probe of the next rows found too few matches."""
    paths = AccessPaths(criteria, match_names(criteria, names))
    if exact := paths.exact_scan(order):
        return RowBatch(_fetch_transactions(exact.rows(order, limit, *after_conditions), [], order, limit))
    if small_scan := paths.small_scan(order):
        candidates = small_scan.rows(small_scan.order, MAX_GATHERED)
        return RowBatch(
            _fetch_transactions(candidates, [*small_scan.row_conditions, *after_conditions], order, limit)
        )
    return _scan_rows(paths, order, MAX_SCANNED, after_conditions, limit)


def _scan_rows(
    paths: AccessPaths, order: Order, at_most: int, after_conditions: list[Sql], limit: int
) -> RowBatch[Transaction]:
    scan = paths.bounded_scan(order, at_most, *after_conditions)
    rows = _fetch_transactions(scan.rows, scan.row_conditions, order, limit)
    return RowBatch(rows, cut_at=scan.end(order) if len(rows) < limit else None)


def _name_scan(names: NameMatch, period: list[Sql], row_conditions: list[Sql]) -> IndexScan | None:
    """None if there are too many names to use as keys."""
    if names.keys is None:
        return None
    return IndexScan(
        NEWEST_FIRST, period, row_conditions, IndexKeys("names_key", "uuid", names.keys), names.extra_rows
    )


def _period(criteria: TransactionFilter) -> list[Sql]:
    return _range(Sql("occurred_at >= %s", [criteria.since]), Sql("occurred_at < %s", [criteria.until]))


def _amounts(criteria: TransactionFilter) -> list[Sql]:
    return _range(Sql("amount >= %s", [criteria.min_amount]), Sql("amount <= %s", [criteria.max_amount]))


def _range(*bounds: Sql) -> list[Sql]:
    return [bound for bound in bounds if bound.values[0] is not None]


def _is_small(scan: IndexScan) -> bool:
    return _count_rows(scan.rows(scan.order, MAX_GATHERED + 1), [], MAX_GATHERED) <= MAX_GATHERED


def _count_rows(rows: Sql, row_conditions: list[Sql], at_most: int) -> int:
    """The number of rows, or `at_most + 1` if there are more than `at_most`."""
    matching = select("1", subquery("", rows, "rows"), row_conditions, limit=at_most + 1)
    [[number]] = fetch_rows(select("count(*)", subquery("", matching, "matching")))
    return int(number)


def _sum_rows(rows: Sql, row_conditions: list[Sql], at_most: int) -> list[FacetSum]:
    """Sums by facet. The few missing rows have an index of their own, so no other row is fetched."""
    matching = select("id, facet_id, amount", subquery("", rows, "rows"), row_conditions, limit=at_most + 1)
    missing = (
        "LEFT JOIN (SELECT id FROM ledger_transaction WHERE missing_since IS NOT NULL) missing USING (id)"
    )
    joined = subquery("", matching, f"matching {missing}")
    amount = "coalesce(sum(amount) FILTER (WHERE missing.id IS NULL), 0)"
    found = select(f"facet_id, count(*), count(missing.id), {amount}", joined)
    return [FacetSum(*row) for row in fetch_rows(Sql(f"{found.text} GROUP BY facet_id", found.values))]


def _after_position(order: Order, position: Position | None) -> list[Sql]:
    if position is None:
        return []
    columns = [name.lstrip("-") for name in order]
    placeholders = ", ".join(f"%s::{_TYPES[column]}" for column in columns)
    comparison = "<" if order[0].startswith("-") else ">"
    return [Sql(f"({', '.join(columns)}) {comparison} ({placeholders})", position)]


def _fetch_transactions(rows: Sql, row_conditions: list[Sql], order: Order, limit: int) -> list[Transaction]:
    """The first transactions of these rows, each annotated with the number of facets that exist."""
    ids = select("id", subquery("", rows, "rows"), row_conditions, order, limit)
    columns = "whole.*, (SELECT count(*) FROM ledger_facet) AS facets_counted"
    found = select(columns, subquery("", ids, "ids JOIN ledger_transaction whole USING (id)"))
    return list(Transaction.objects.raw(f"{found.text} {order_by(order, 'whole.')}", found.values))


def _facet_count(rows: list[Transaction]) -> int:
    return int(vars(rows[0])["facets_counted"]) if rows else Facet.objects.count()
