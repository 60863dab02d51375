"""SQL for transactions: reads of one snapshot, query fragments with their parameters, scans of one index in its order.

All SQL text is written here; every value that a person typed is a parameter. `query_planner` chooses among
the scans.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection

from backoffice.core.web.pagination import Order, Position


@contextmanager
def consistent_read() -> Iterator[None]:
    """All reads in the block see one snapshot, even while the sync merges. Nothing may be written.

    Inside a transaction of the caller it has no effect.
    """
    if connection.in_atomic_block:
        yield
        return
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        # Raw SQL, because Django would start a write transaction on SQLite and READ COMMITTED on PostgreSQL.
        cursor.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_postgresql else "BEGIN DEFERRED"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")


class Sql(NamedTuple):
    """A fragment of a query and the values of its placeholders."""

    text: str
    values: Sequence[Any] = ()


def order_by(order: Order, table: str = "") -> str:
    columns = (f"{table}{name.lstrip('-')} {'DESC' if name.startswith('-') else 'ASC'}" for name in order)
    return f"ORDER BY {', '.join(columns)}"


def select(
    columns: str, source: Sql, where: Iterable[Sql] = (), order: Order = (), limit: int | None = None
) -> Sql:
    """The rows of the source that meet all conditions, in this order, at most `limit`."""
    condition = all_conditions(list(where))
    parts = ["SELECT", columns, "FROM", source.text]
    parts += ["WHERE", condition.text] if condition.text else []
    parts += [order_by(order)] if order else []
    parts += [f"LIMIT {limit:d}"] if limit is not None else []
    return Sql(" ".join(parts), [*source.values, *condition.values])


def subquery(prefix: str, query: Sql, name: str) -> Sql:
    return Sql(f"{prefix} ({query.text}) {name}", query.values)


def cross_join(left: Sql, right: Sql) -> Sql:
    return Sql(f"{left.text} CROSS JOIN {right.text}", [*left.values, *right.values])


def union_all(*queries: Sql) -> Sql:
    values = list(chain.from_iterable(query.values for query in queries))
    return Sql(" UNION ALL ".join(f"({query.text})" for query in queries), values)


def all_conditions(conditions: list[Sql]) -> Sql:
    return Sql(
        " AND ".join(condition.text for condition in conditions),
        list(chain.from_iterable(condition.values for condition in conditions)),
    )


def fetch_rows(query: Sql) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query.text, query.values)
        return list(cursor.fetchall())


_COLUMNS = "occurred_at, amount, id, facet_id, names_key"  # the columns that every index of the list contains
_TABLE = Sql("ledger_transaction")


class IndexKeys(NamedTuple):
    """Key values of an index that begins with this column."""

    column: str
    type: str
    values: Sequence[Any]


@dataclass(frozen=True)
class IndexScan:
    """A scan of one index for some keys; each key's transactions are indexed in this order.

    Without keys, an index over all transactions. `index_conditions` are applied by the index
    itself; `row_conditions` must be checked for each row. `extra_rows` select further rows, which no key leads to.
    """

    order: Order
    index_conditions: list[Sql]
    row_conditions: list[Sql]
    keys: IndexKeys | None = None
    extra_rows: Sequence[Sql] = ()

    def rows(self, order: Order, limit: int, *extra_conditions: Sql) -> Sql:
        """The first `limit` rows of each key; the result as a whole is not ordered."""
        conditions = [*self.index_conditions, *extra_conditions]
        if self.keys is None:
            return select(_COLUMNS, _TABLE, conditions, order, limit)
        rows_of_key = select(
            _COLUMNS, _TABLE, [Sql(f"{self.keys.column} = one.key"), *conditions], order, limit
        )
        keys = Sql(f"unnest(%s::{self.keys.type}[]) one (key)", [self.keys.values])
        rows = select("found.*", cross_join(keys, subquery("LATERAL", rows_of_key, "found")))
        extra = [select(_COLUMNS, _TABLE, [one, *conditions]) for one in self.extra_rows]
        return union_all(rows, *extra) if extra else rows

    def merged(self, order: Order, limit: int, *extra_conditions: Sql) -> Sql:
        """The first rows of all keys together, in order, reading no key further than needed.

        Expensive to plan.
        """
        if self.keys is None:
            return self.rows(order, limit, *extra_conditions)
        keys = [Sql(f"{self.keys.column} = %s", [key]) for key in self.keys.values]
        scans = [
            select(_COLUMNS, _TABLE, [key, *self.index_conditions, *extra_conditions], order, limit)
            for key in keys
        ]
        return select("*", subquery("", union_all(*scans), "scans"), [], order, limit)


@dataclass(frozen=True)
class BoundedScan:
    """Rows in list order, at most `limit` of them, and the conditions still to be checked for each row."""

    rows: Sql
    row_conditions: list[Sql]
    limit: int

    def end(self, order: Order) -> Position | None:
        """The position of its last row; None if the transactions end before the limit."""
        rows = select(f"{order_column(order)}, id", subquery("", self.rows, "scanned"))
        found = fetch_rows(Sql(f"{rows.text} OFFSET {self.limit - 1:d}", rows.values))
        return [str(found[0][0]), found[0][1]] if found else None


def order_column(order: Order) -> str:
    """The first column of an order."""
    return order[0].lstrip("-")
