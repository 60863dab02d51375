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
   A look at the next few (`LOOKED`) comes first of all: what is frequent is found there, with no question beforehand.
   Every index has all that can be asked of a row, so neither way fetches rows that nobody will see.
4. **What has no quick answer is broken off.** If something takes longer than `PATIENCE`, for reasons that nobody
   thought of, people are told, and ask for less.

Texts of people go into queries as parameters alone. Each scan names the columns of its index in the order of the index,
with an `ORDER BY` and a `LIMIT` of its own: so PostgreSQL reads it in this order, and no further, whatever it expects.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import NamedTuple

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from backoffice.core.pagination import Order, Position, Read, Stretch
from backoffice.ledger import facets
from backoffice.ledger.chosen import NEWEST_FIRST, Chosen
from backoffice.ledger.mirrored import Facet, Transaction
from backoffice.ledger.naming import Said, said_by, said_of_each
from backoffice.ledger.pieces import Sql, fetch, named, ordered, select
from backoffice.ledger.scans import Keys, Scan, Walk, column_of

LOOKED, GATHERED, WALKED = 2_000, 10_000, 30_000
PATIENCE = 5.0  # seconds
_LARGEST_FIRST: Order = ("-amount", "-id")
_TYPES = {"occurred_at": "timestamptz", "amount": "numeric", "id": "bigint"}


class Summed(NamedTuple):
    """How many of a facet there are, how many of them the service lists no more, and what the others add up to."""

    facet_id: int
    number: int
    missing: int
    amount: Decimal


class Whole(NamedTuple):
    """Rows among which all that fit are, if they are not too many, and what has to be asked of each."""

    rows: Sql
    besides: list[Sql]
    walk: Walk | None = None

    @property
    def is_whole(self) -> bool:
        """Not where a walk ends before the transactions do."""
        return self.walk is None or self.walk.end(NEWEST_FIRST) is None


class TooWideError(Exception):
    """What is asked for has no quick answer. The message says what to ask for instead."""


class Ways:
    """The ways to some transactions: by time or amount, of all or of each facet, and by names if they are few."""

    def __init__(self, chosen: Chosen, said: Said | None) -> None:
        ids = chosen.facets_of(facets.known_facets())
        self.is_empty = not ids
        period, amounts = _period(chosen), _amounts(chosen)
        words = [Sql("facet_id = ANY(%s)", [ids])] if chosen.words else []
        texts = [said.of_row] if said else []
        of = Keys("facet_id", "integer", ids) if words else None
        self.by_time = Scan(NEWEST_FIRST, period, [*amounts, *texts], of)
        self.by_amount = Scan(_LARGEST_FIRST, amounts, [*period, *texts], of)
        self.by_name = _by_name(said, period, [*amounts, *words]) if said else None
        is_along_facets = bool(texts and words)
        self._along_time = (
            self.by_time if is_along_facets else Scan(NEWEST_FIRST, period, [*amounts, *texts, *words])
        )
        self._small = [
            (self.by_name, True),
            (self.by_amount, bool(amounts)),
            (self.by_time, bool(words or period)),
        ]
        self._is_along_facets = is_along_facets

    def in_order(self, order: Order) -> Scan | None:
        """The one whose index alone knows the answer and its order."""
        ways = (self.by_name, self.by_time, self.by_amount)
        return next(
            (way for way in ways if way and not way.besides and column_of(way.order) == column_of(order)),
            None,
        )

    def of_few(self, order: Order) -> Scan | None:
        """One that leads to few rows, if there is one, and if walking along it is not as good."""
        skipped = self.by_time if self._is_along_facets and column_of(order) == "occurred_at" else None
        ways = (way for way, is_narrow in self._small if way and is_narrow and way is not skipped)
        return next((way for way in ways if _is_small(way)), None)

    def walked(self, order: Order, limit: int, *more: Sql) -> Walk:
        """The next rows in this order, at most so many."""
        way = self.by_amount if column_of(order) == "amount" else self._along_time
        return Walk(way.merged(order, limit, *more), way.besides, limit)


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
    with patience():
        ways = Ways(chosen, said_by(chosen))
        return (0, True) if ways.is_empty else _count(ways, most)


def sums(chosen: Chosen, *, most: int) -> list[Summed] | None:
    """What they add up to, by facet; None where counting them would end before all are counted."""
    with patience():
        ways = Ways(chosen, said_by(chosen))
        if ways.is_empty:
            return []
        whole = _whole(ways, most)
        found = _summed(whole.rows, whole.besides, most)
        return found if sum(one.number for one in found) <= most and whole.is_whole else None


def _count(ways: Ways, most: int) -> tuple[int, bool]:
    whole = _whole(ways, most)
    number = _counted(whole.rows, whole.besides, most)
    return number, number <= most and whole.is_whole


def _whole(ways: Ways, most: int) -> Whole:
    exact = ways.in_order(NEWEST_FIRST) or ways.in_order(_LARGEST_FIRST) or ways.of_few(NEWEST_FIRST)
    if exact is not None:
        return Whole(exact.rows(exact.order, max(most, GATHERED) + 1), exact.besides)
    walk = ways.walked(NEWEST_FIRST, WALKED)
    return Whole(walk.rows, walk.besides, walk)


def _stretch(chosen: Chosen, order: Order, position: Position | None, limit: int) -> Stretch[Transaction]:
    said, behind = said_of_each(chosen), _behind(order, position)
    ways = Ways(chosen, said)
    if ways.is_empty:
        return Stretch([])
    if exact := ways.in_order(order):
        return Stretch(_transactions(exact.rows(order, limit, *behind), [], order, limit))
    with patience():
        soon = _walk_on(ways, order, LOOKED, behind, limit)
        return soon if soon.cut_at is None else _searched(chosen, said, order, behind, limit)


def _searched(
    chosen: Chosen, said: Said | None, order: Order, behind: list[Sql], limit: int
) -> Stretch[Transaction]:
    """Where a look at what comes next has not found enough."""
    ways = Ways(chosen, said_by(chosen, said))
    if exact := ways.in_order(order):
        return Stretch(_transactions(exact.rows(order, limit, *behind), [], order, limit))
    if few := ways.of_few(order):
        gathered = few.rows(few.order, GATHERED)
        return Stretch(_transactions(gathered, [*few.besides, *behind], order, limit))
    return _walk_on(ways, order, WALKED, behind, limit)


def _walk_on(ways: Ways, order: Order, at_most: int, behind: list[Sql], limit: int) -> Stretch[Transaction]:
    walk = ways.walked(order, at_most, *behind)
    rows = _transactions(walk.rows, walk.besides, order, limit)
    return Stretch(rows, cut_at=walk.end(order) if len(rows) < limit else None)


def _by_name(said: Said, period: list[Sql], besides: list[Sql]) -> Scan | None:
    """None if the names are too many to be keys."""
    if said.keys is None:
        return None
    return Scan(NEWEST_FIRST, period, besides, Keys("names_key", "uuid", said.keys), said.alone)


def _period(chosen: Chosen) -> list[Sql]:
    return _range(Sql("occurred_at >= %s", [chosen.since]), Sql("occurred_at < %s", [chosen.until]))


def _amounts(chosen: Chosen) -> list[Sql]:
    return _range(Sql("amount >= %s", [chosen.least]), Sql("amount <= %s", [chosen.most]))


def _range(*ends: Sql) -> list[Sql]:
    return [end for end in ends if end.values[0] is not None]


def _is_small(scan: Scan) -> bool:
    return _counted(scan.rows(scan.order, GATHERED + 1), [], GATHERED) <= GATHERED


def _counted(rows: Sql, besides: list[Sql], most: int) -> int:
    """How many of the rows there are, or one more than the most that matter."""
    fitting = select("1", named("", rows, "rows"), besides, limit=most + 1)
    [[number]] = fetch(select("count(*)", named("", fitting, "fitting")))
    return int(number)


def _summed(rows: Sql, besides: list[Sql], most: int) -> list[Summed]:
    """By facet. The few that the service lists no more have an index of their own, so no other row is fetched."""
    fitting = select("id, facet_id, amount", named("", rows, "rows"), besides, limit=most + 1)
    missing = (
        "LEFT JOIN (SELECT id FROM ledger_transaction WHERE missing_since IS NOT NULL) missing USING (id)"
    )
    both = named("", fitting, f"fitting {missing}")
    amount = "coalesce(sum(amount) FILTER (WHERE missing.id IS NULL), 0)"
    found = select(f"facet_id, count(*), count(missing.id), {amount}", both)
    return [Summed(*row) for row in fetch(Sql(f"{found.text} GROUP BY facet_id", found.values))]


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
