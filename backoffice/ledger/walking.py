"""Finds one page among ten million transactions as quickly as among ten thousand, on PostgreSQL.

The trouble with filters and an order is that an index serves one of the two: a rare status in the order of time, or
large amounts of one month, make a database read most of the table, or sort it. Here no query can:

1. **Words become keys.** Currency, type, status and direction occur in some hundred combinations, the facets; names in
   far fewer combinations than there are transactions (`ledger_names`). Whatever words or texts are asked for, they are
   a list of facets, or of combinations of names, before the large table is touched.
2. **A page is a merge.** For each key an index holds the transactions in the order of the list. The first fifty of
   each key together hold the first fifty of all: as quick on the last page as on the first, whatever the table's size.
3. **What no index puts in order is bounded.** An amount within a period, or a text and a status, need two indexes at
   once. Either one of the conditions leaves few transactions: then those are gathered and put in order (`GATHERED`).
   Or all leave many: then fifty are found soon on the way along the order. Data that is neither ends the page early:
   after `WALKED` rows it shows what it has found, and its neighbour goes on from there. Nothing is lost or repeated.
4. **What has no quick answer is not asked.** A text of very many names has no order by amount, and what takes longer
   than `PATIENCE` for reasons that nobody thought of is broken off. People are told, and ask for less.

Texts of people go into queries as parameters alone. Each scan names the columns of its index in the order of the index,
with an `ORDER BY` and a `LIMIT` of its own: so PostgreSQL reads it in this order, and no further, whatever it expects.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from backoffice.core.pagination import Order, Position, Read, Stretch
from backoffice.ledger import facets
from backoffice.ledger.chosen import NEWEST_FIRST, Chosen
from backoffice.ledger.mirrored import Facet, Transaction
from backoffice.ledger.pieces import Sql, all_of, cross, fetch, named, ordered, select, union

GATHERED, WALKED = 10_000, 30_000
WHOLE_GATHERED, WHOLE_WALKED, READ_THROUGH = 2_000, 4_000, 8_000
"""The same of rows that are not in the index as a whole: each may have to be fetched from a place of its own. The last
one is of rows that stand together, whose names are read."""
NAMES_MERGED = 500
PATIENCE = 5.0  # seconds
_LARGEST_FIRST: Order = ("-amount", "-id")
_NAMES = r"(counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id)"
_TYPES = {"occurred_at": "timestamptz", "amount": "numeric", "id": "bigint"}
_INDEXED = "occurred_at, amount, id"
_WHOLE = f"{_INDEXED}, facet_id, transaction_id, counterparty, {_NAMES} AS names"


_TABLE = Sql("ledger_transaction")


@dataclass(frozen=True)
class Scan:
    """Some keys of one index, which holds each one's transactions in this order, and so in the reverse of it.

    `within` narrows the index itself; `besides` has to be asked of each row. `alone` is a row that no key leads to.
    """

    key: str
    key_type: str
    keys: Sequence[Any]
    order: Order
    within: list[Sql]
    besides: list[Sql]
    columns: str = _INDEXED
    alone: Sql | None = None

    @property
    def gathered(self) -> int:
        """How many of its rows may be put in another order."""
        return GATHERED if self.columns == _INDEXED else WHOLE_GATHERED

    def rows(self, order: Order, limit: int, *more: Sql) -> Sql:
        """The first so many rows of each key; together they are not in order."""
        narrowed = [*self.within, *more]
        of_one = select(self.columns, _TABLE, [Sql(f"{self.key} = one.key"), *narrowed], order, limit)
        keys = Sql(f"unnest(%s::{self.key_type}[]) one (key)", [self.keys])
        rows = select("found.*", cross(keys, named("LATERAL", of_one, "found")))
        if self.alone is None:
            return rows
        return union(rows, select(self.columns, _TABLE, [self.alone, *narrowed]))

    def merged(self, order: Order, limit: int, *more: Sql) -> Sql:
        """The first rows of all keys together, in order, no key read further than needed. Dear to plan."""
        keys = [Sql(f"{self.key} = %s", [key]) for key in self.keys]
        scans = [select(self.columns, _TABLE, [key, *self.within, *more], order, limit) for key in keys]
        return select("*", named("", union(*scans), "scans"), [], order, limit)


@dataclass(frozen=True)
class Walk:
    """Rows in the order of the list, at most `limit` of them, and what has to be asked of each."""

    rows: Sql
    besides: list[Sql]
    limit: int

    def end(self, order: Order) -> Position | None:
        """Where it stops; None if that is the end of the transactions."""
        rows = select(f"{_column(order)}, id", named("", self.rows, "walked"))
        found = fetch(Sql(f"{rows.text} OFFSET {self.limit - 1:d}", rows.values))
        return [str(found[0][0]), found[0][1]] if found else None


class TooWideError(Exception):
    """What is asked for has no quick answer. The message says what to ask for instead."""


class Ways:
    """The ways to some transactions: by the time or the amount of each facet, and by names if they are few."""

    def __init__(self, chosen: Chosen) -> None:
        ids = chosen.facets_of(facets.known_facets())
        period, amounts, texts = _period(chosen), _amounts(chosen), _texts(chosen)
        columns = _WHOLE if texts else _INDEXED
        words = [Sql("facet_id = ANY(%s)", [ids])] if chosen.words else []
        self.is_empty = not ids
        self.by_time = Scan("facet_id", "integer", ids, NEWEST_FIRST, period, [*amounts, *texts], columns)
        self.by_amount = Scan("facet_id", "integer", ids, _LARGEST_FIRST, amounts, [*period, *texts], columns)
        self.by_name = _by_name(chosen, period, [*amounts, *words]) if texts and ids else None
        self._small = [
            (self.by_name, True),
            (self.by_amount, bool(amounts)),
            (self.by_time, bool(words or period)),
        ]
        self._along_time = period, [*amounts, *texts, *words]
        self._walked = READ_THROUGH if texts else WALKED
        self._is_along_facets = bool(texts and words)

    def in_order(self, order: Order) -> Scan | None:
        """The one whose index alone knows the answer and its order."""
        ways = (self.by_name, self.by_time, self.by_amount)
        return next(
            (way for way in ways if way and not way.besides and _column(way.order) == _column(order)), None
        )

    def of_few(self, order: Order) -> Scan | None:
        """One that leads to few rows, if there is one, and if walking along it is not as good."""
        skipped = self.by_time if self._is_along_facets and _column(order) == "occurred_at" else None
        ways = (way for way, is_narrow in self._small if way and is_narrow and way is not skipped)
        return next((way for way in ways if _is_small(way)), None)

    def walked(self, order: Order, *more: Sql) -> "Walk":
        """The next rows in this order."""
        if _column(order) == "amount":
            if self.by_amount.columns == _WHOLE:
                raise TooWideError("Too many names have this text to be sorted by amount. Type more of it.")
            return Walk(self.by_amount.merged(order, WALKED, *more), self.by_amount.besides, WALKED)
        if self._is_along_facets:
            return Walk(self.by_time.merged(order, WHOLE_WALKED, *more), self.by_time.besides, WHOLE_WALKED)
        within, besides = self._along_time
        return Walk(select(_WHOLE, _TABLE, [*within, *more], order, self._walked), besides, self._walked)


@contextmanager
def patience() -> Iterator[None]:
    """Break off what takes too long. Raises TooWideError."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{PATIENCE * 1000:.0f}"])
            yield
    except OperationalError as exc:
        if not isinstance(exc.__cause__, QueryCanceled):
            raise
        raise TooWideError("This takes too long to find. Choose a shorter period, or one currency.") from exc


def read(chosen: Chosen) -> Read[Transaction]:
    """How to find the first so many of these transactions behind a position."""

    def stretch(order: Order, position: Position | None, limit: int) -> Stretch[Transaction]:
        found = _stretch(chosen, order, position, limit)
        if _facets_counted(found.rows) == len(facets.known_facets()):
            return found
        facets.forget()  # the sync has met new ones
        return _stretch(chosen, order, position, limit)

    return stretch


def count(chosen: Chosen, *, most: int) -> tuple[int, bool]:
    """How many there are, and whether that is all: counting ends behind `most`, and where walking ends."""
    ways = Ways(chosen)
    if ways.is_empty:
        return 0, True
    with patience():
        return _count(ways, most)


def _count(ways: Ways, most: int) -> tuple[int, bool]:
    exact = ways.in_order(NEWEST_FIRST) or ways.in_order(_LARGEST_FIRST) or ways.of_few(NEWEST_FIRST)
    if exact is not None:
        number = _counted(exact.rows(exact.order, max(most, GATHERED) + 1), exact.besides, most)
        return number, number <= most
    walk = ways.walked(NEWEST_FIRST)
    number = _counted(walk.rows, walk.besides, most)
    return number, number <= most and walk.end(NEWEST_FIRST) is None


def _stretch(chosen: Chosen, order: Order, position: Position | None, limit: int) -> Stretch[Transaction]:
    ways = Ways(chosen)
    if ways.is_empty:
        return Stretch([])
    behind = _behind(order, position)
    if exact := ways.in_order(order):
        return Stretch(_transactions(exact.rows(order, limit, *behind), [], order, limit))
    with patience():
        if few := ways.of_few(order):
            gathered = few.rows(few.order, few.gathered)
            return Stretch(_transactions(gathered, [*few.besides, *behind], order, limit))
        walk = ways.walked(order, *behind)
        rows = _transactions(walk.rows, walk.besides, order, limit)
        return Stretch(rows, cut_at=walk.end(order) if len(rows) < limit else None)


def _by_name(chosen: Chosen, period: list[Sql], besides: list[Sql]) -> Scan | None:
    """The combinations of names that have the texts, as keys; None if they are too many. The index is of `names`."""
    asked = (("names", chosen.text), ("names", chosen.counterparty), ("counterparty", chosen.counterparty))
    said = [Sql(f"{column} ILIKE %s", [_part(text)]) for column, text in asked if text]
    with patience():
        found = fetch(select("key", Sql("ledger_names"), said, limit=NAMES_MERGED + 1))
    if len(found) > NAMES_MERGED:
        return None
    key, keys = f"md5{_NAMES}::uuid", [key for [key] in found]
    return Scan(key, "uuid", keys, NEWEST_FIRST, period, besides, _WHOLE, alone=_by_id(chosen))


def _by_id(chosen: Chosen) -> Sql | None:
    """The transaction whose id the text is, where its names do not have the text as well."""
    if not chosen.text:
        return None
    conditions = [Sql(f"transaction_id = %s AND NOT {_NAMES} ILIKE %s", [chosen.text, _part(chosen.text)])]
    if chosen.counterparty:
        conditions.append(Sql("counterparty ILIKE %s", [_part(chosen.counterparty)]))
    return all_of(conditions)


def _texts(chosen: Chosen) -> list[Sql]:
    """What the texts ask of a row that was read as a whole."""
    texts = []
    if chosen.text:
        texts.append(Sql("(names ILIKE %s OR transaction_id = %s)", [_part(chosen.text), chosen.text]))
    if chosen.counterparty:
        texts.append(Sql("counterparty ILIKE %s", [_part(chosen.counterparty)]))
    return texts


def _period(chosen: Chosen) -> list[Sql]:
    return _range(Sql("occurred_at >= %s", [chosen.since]), Sql("occurred_at < %s", [chosen.until]))


def _amounts(chosen: Chosen) -> list[Sql]:
    return _range(Sql("amount >= %s", [chosen.least]), Sql("amount <= %s", [chosen.most]))


def _range(*ends: Sql) -> list[Sql]:
    return [end for end in ends if end.values[0] is not None]


def _part(text: str) -> str:
    """The pattern of everything that has this text somewhere."""
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


def _is_small(scan: Scan) -> bool:
    return _counted(scan.rows(scan.order, scan.gathered + 1), [], scan.gathered) <= scan.gathered


def _counted(rows: Sql, besides: list[Sql], most: int) -> int:
    """How many of the rows there are, or one more than the most that matter."""
    fitting = select("1", named("", rows, "rows"), besides, limit=most + 1)
    [[number]] = fetch(select("count(*)", named("", fitting, "fitting")))
    return int(number)


def _behind(order: Order, position: Position | None) -> list[Sql]:
    if position is None:
        return []
    columns = [name.lstrip("-") for name in order]
    places = ", ".join(f"%s::{_TYPES[column]}" for column in columns)
    comparison = "<" if order[0].startswith("-") else ">"
    return [Sql(f"({', '.join(columns)}) {comparison} ({places})", position)]


def _transactions(rows: Sql, besides: list[Sql], order: Order, limit: int) -> list[Transaction]:
    """The first transactions of these rows, each with the number of facets that there are."""
    ids = select("id", named("", rows, "rows"), besides, order, limit)
    columns = "whole.*, (SELECT count(*) FROM ledger_facet) AS facets_counted"
    found = select(columns, named("", ids, "ids JOIN ledger_transaction whole USING (id)"))
    return list(Transaction.objects.raw(f"{found.text} {ordered(order, 'whole.')}", found.values))


def _facets_counted(rows: list[Transaction]) -> int:
    return int(vars(rows[0])["facets_counted"]) if rows else Facet.objects.count()


def _column(order: Order) -> str:
    return order[0].lstrip("-")
