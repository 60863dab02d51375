"""Keyset pagination: every page costs the same, and rows added meanwhile cause no repeated or missing rows."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeAlias, TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)
Order: TypeAlias = tuple[str, ...]
"""Columns, `-` for descending, together unique and never null."""
Position: TypeAlias = list[Any]
"""The values of one row in the columns of an order."""
_END: Position = []
"""Position of an empty page: going back from it starts at the end of the list."""


PAGE_SIZE = 50


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of rows, and opaque cursors of the next and previous page (None where there is none)."""

    rows: list[Row]
    next_cursor: str | None
    previous_cursor: str | None

    @property
    def is_only(self) -> bool:
        """Whether its rows are all that were found."""
        return self.next_cursor is None and self.previous_cursor is None


@dataclass(frozen=True)
class RowBatch(Generic[Row]):
    """Rows found from a position on. `cut_at`: the search ended there before it had found enough."""

    rows: list[Row]
    cut_at: Position | None = None


RowReader: TypeAlias = Callable[[Order, Position | None, int], RowBatch[Row]]
"""Reads up to `limit` rows after a position in an order; from the beginning without a position."""


def keyset_page(
    queryset: QuerySet[Row], *, order: Order, cursor: str | None, size: int = PAGE_SIZE
) -> Page[Row]:
    """The page at this cursor; the first page without a cursor, or with one that is invalid.

    One query, whatever the depth.
    """

    return paginate(queryset_reader(queryset), order=order, cursor=cursor, size=size)


def queryset_reader(
    queryset: QuerySet[Row], load: Callable[[QuerySet[Row]], list[Row]] = list
) -> RowReader[Row]:
    """A `RowReader` for a queryset, whose rows `load` reads. Fast if an index serves its conditions and the order
    together.
    """

    def read(order: Order, position: Position | None, limit: int) -> RowBatch[Row]:
        selected = queryset.order_by(*order)
        if position is not None:
            selected = selected.filter(after_position(order, position))
        return RowBatch(load(selected[:limit]))

    return read


def merged_reader(*readers: RowReader[Row]) -> RowReader[Row]:
    """A `RowReader` for the rows of all these readers, in one order. They have no row in common and are never cut."""

    def read(order: Order, position: Position | None, limit: int) -> RowBatch[Row]:
        rows = [row for read_one in readers for row in read_one(order, position, limit).rows]
        for name in reversed(order):
            rows.sort(key=attrgetter(name.lstrip("-")), reverse=name.startswith("-"))
        return RowBatch(rows[:limit])

    return read


def paginate(
    read: RowReader[Row], *, order: Order, cursor: str | None, size: int = PAGE_SIZE, selection: str = ""
) -> Page[Row]:
    """The same for rows that `read` finds. Where the search was cut, the next page starts there.

    `selection` identifies the selection of rows, so that a cursor is valid for that selection only.
    """
    backwards, position = _decode_cursor(cursor, order, selection)
    found = read(reverse_of(order) if backwards else order, position, size + 1)
    rows, first, last = found.rows[:size], None, found.cut_at
    if rows:
        first, last = _position(rows[0], order), last or _position(rows[-1], order)
    has_more = len(found.rows) > size or found.cut_at is not None
    position_after = last if has_more else None
    position_before = None if position is None else first or last or _END
    next_position, previous_position = (
        (position_before, position_after) if backwards else (position_after, position_before)
    )
    return Page(
        rows[::-1] if backwards else rows,
        next_cursor=None if next_position is None else cursor_at(next_position, order, selection=selection),
        previous_cursor=None
        if previous_position is None
        else cursor_at(previous_position, order, selection=selection, backwards=True),
    )


def reverse_of(order: Order) -> Order:
    """The same columns in the opposite direction."""
    return tuple(name[1:] if name.startswith("-") else f"-{name}" for name in order)


def after_position(order: Order, position: Position) -> Q:
    """Rows after the position: (a, b) > (x, y) written as a >= x and (a > x or (a = x and b > y)).

    The first condition follows from the second. Without it, a database would read the index from its
    beginning.
    """
    comparisons = [(name.lstrip("-"), "lt" if name.startswith("-") else "gt") for name in order]
    later, equal = Q(), Q()
    for (column, operator), value in zip(comparisons, position, strict=True):
        later |= equal & Q(**{f"{column}__{operator}": value})
        equal &= Q(**{column: value})
    column, operator = comparisons[0]
    return Q(**{f"{column}__{operator}e": position[0]}) & later


def cursor_at(position: Position, order: Order, *, selection: str = "", backwards: bool = False) -> str:
    """A cursor to the rows after the position in that order, or before it."""
    return signing.Signer(salt=_salt(order, selection)).sign_object([backwards, position])


def _position(row: Model, order: Order) -> Position:
    return [_plain_value(getattr(row, name.lstrip("-"))) for name in order]


def _plain_value(value: object) -> object:
    return value if isinstance(value, int) else str(value)


def _decode_cursor(cursor: str | None, order: Order, selection: str) -> tuple[bool, Position | None]:
    if not cursor:
        return False, None
    try:
        backwards, position = signing.Signer(salt=_salt(order, selection)).unsign_object(cursor)
    except signing.BadSignature:
        return False, None
    return backwards, position or None


def _salt(order: Order, selection: str) -> str:
    """Makes a cursor valid only for the order and selection for which it was made."""
    return f"core.pagination:{','.join(order)}:{selection}"
