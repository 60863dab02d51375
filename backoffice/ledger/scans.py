"""One index of the transactions, read in its order, as SQL. Which of them answers what is asked, says `walking`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from backoffice.core.pagination import Order, Position
from backoffice.ledger.pieces import Sql, cross, fetch, named, select, union

_COLUMNS = "occurred_at, amount, id, facet_id, names_key"  # what every index of the list has
_TABLE = Sql("ledger_transaction")


class Keys(NamedTuple):
    """Those of an index that begins with this column."""

    column: str
    type: str
    values: Sequence[Any]


@dataclass(frozen=True)
class Scan:
    """Some keys of one index, which holds each one's transactions in this order, and so in the reverse of it.

    Without a key, an index of all transactions. `within` narrows the index itself; `besides` has to be asked of each
    row. `alone` is a row that no key leads to.
    """

    order: Order
    within: list[Sql]
    besides: list[Sql]
    of: Keys | None = None
    alone: Sql | None = None

    def rows(self, order: Order, limit: int, *more: Sql) -> Sql:
        """The first so many rows of each key; together they are not in order."""
        narrowed = [*self.within, *more]
        if self.of is None:
            return select(_COLUMNS, _TABLE, narrowed, order, limit)
        of_one = select(_COLUMNS, _TABLE, [Sql(f"{self.of.column} = one.key"), *narrowed], order, limit)
        keys = Sql(f"unnest(%s::{self.of.type}[]) one (key)", [self.of.values])
        rows = select("found.*", cross(keys, named("LATERAL", of_one, "found")))
        if self.alone is None:
            return rows
        return union(rows, select(_COLUMNS, _TABLE, [self.alone, *narrowed]))

    def merged(self, order: Order, limit: int, *more: Sql) -> Sql:
        """The first rows of all keys together, in order, no key read further than needed. Dear to plan."""
        if self.of is None:
            return self.rows(order, limit, *more)
        keys = [Sql(f"{self.of.column} = %s", [key]) for key in self.of.values]
        scans = [select(_COLUMNS, _TABLE, [key, *self.within, *more], order, limit) for key in keys]
        return select("*", named("", union(*scans), "scans"), [], order, limit)


@dataclass(frozen=True)
class Walk:
    """Rows in the order of the list, at most `limit` of them, and what has to be asked of each."""

    rows: Sql
    besides: list[Sql]
    limit: int

    def end(self, order: Order) -> Position | None:
        """Where it stops; None if that is the end of the transactions."""
        rows = select(f"{column_of(order)}, id", named("", self.rows, "walked"))
        found = fetch(Sql(f"{rows.text} OFFSET {self.limit - 1:d}", rows.values))
        return [str(found[0][0]), found[0][1]] if found else None


def column_of(order: Order) -> str:
    """The column that an order begins with."""
    return order[0].lstrip("-")
