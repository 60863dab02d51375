"""Keyset pagination: any page costs the same, and rows arriving in between neither repeat nor vanish."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)
Order: TypeAlias = tuple[str, ...]
"""Columns, `-` for descending, together unique and never null."""
Position: TypeAlias = list[Any]
"""The values of one row in the columns of an order."""
_END: Position = []
"""Where nothing is left, the way back begins at the end, whatever that is by then."""


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of rows, and opaque cursors of its neighbours (None where there is none)."""

    rows: list[Row]
    next_cursor: str | None
    previous_cursor: str | None


@dataclass(frozen=True)
class RowBatch(Generic[Row]):
    """What was found from a position on. `cut_at`: the search stopped there before it had found enough."""

    rows: list[Row]
    cut_at: Position | None = None


RowReader: TypeAlias = Callable[[Order, Position | None, int], RowBatch[Row]]
"""The first so many rows behind a position in an order, or from the beginning."""


def keyset_page(queryset: QuerySet[Row], *, order: Order, cursor: str | None, size: int = 50) -> Page[Row]:
    """The page that the cursor points at; the first one for no cursor or one that is not ours.

    One query, whatever the depth.
    """

    return paginate(queryset_reader(queryset), order=order, cursor=cursor, size=size)


def queryset_reader(queryset: QuerySet[Row]) -> RowReader[Row]:
    """How to find rows of a query: as quickly as an index serves its conditions and the order at once."""

    def read(order: Order, position: Position | None, limit: int) -> RowBatch[Row]:
        selected = queryset.order_by(*order)
        if position is not None:
            selected = selected.filter(after_position(order, position))
        return RowBatch(list(selected[:limit]))

    return read


def paginate(
    read: RowReader[Row], *, order: Order, cursor: str | None, size: int = 50, among: str = ""
) -> Page[Row]:
    """The same of rows that `read` knows how to find. Where it was cut, the neighbour begins where it stopped.

    `among` says which rows, so that no cursor leads from one choice of rows into another.
    """
    backwards, position = _decode_cursor(cursor, order, among)
    found = read(reverse_of(order) if backwards else order, position, size + 1)
    rows, first, last = found.rows[:size], None, found.cut_at
    if rows:
        first, last = _position(rows[0], order), last or _position(rows[-1], order)
    has_more = len(found.rows) > size or found.cut_at is not None
    beyond = last if has_more else None
    before = None if position is None else first or last or _END
    ahead, back = (before, beyond) if backwards else (beyond, before)
    return Page(
        rows[::-1] if backwards else rows,
        next_cursor=None if ahead is None else cursor_at(ahead, order, among=among),
        previous_cursor=None if back is None else cursor_at(back, order, among=among, backwards=True),
    )


def reverse_of(order: Order) -> Order:
    """The same columns from the other end."""
    return tuple(name[1:] if name.startswith("-") else f"-{name}" for name in order)


def after_position(order: Order, position: Position) -> Q:
    """Rows behind the position: (a, b) > (x, y) written as a >= x and (a > x or (a = x and b > y)).

    The first condition follows from the second. Without it a database would read the index from its beginning.
    """
    comparisons = [(name.lstrip("-"), "lt" if name.startswith("-") else "gt") for name in order]
    later, equal = Q(), Q()
    for (column, operator), value in zip(comparisons, position, strict=True):
        later |= equal & Q(**{f"{column}__{operator}": value})
        equal &= Q(**{column: value})
    column, operator = comparisons[0]
    return Q(**{f"{column}__{operator}e": position[0]}) & later


def cursor_at(position: Position, order: Order, *, among: str = "", backwards: bool = False) -> str:
    """A cursor to what lies behind the position in that order, or before it."""
    return signing.Signer(salt=_salt(order, among)).sign_object([backwards, position])


def _position(row: Model, order: Order) -> Position:
    return [_plain_value(getattr(row, name.lstrip("-"))) for name in order]


def _plain_value(value: object) -> object:
    return value if isinstance(value, int) else str(value)


def _decode_cursor(cursor: str | None, order: Order, among: str) -> tuple[bool, Position | None]:
    if not cursor:
        return False, None
    try:
        backwards, position = signing.Signer(salt=_salt(order, among)).unsign_object(cursor)
    except signing.BadSignature:
        return False, None
    return backwards, position or None


def _salt(order: Order, among: str) -> str:
    """A cursor counts in the order that it was made for, and in no other."""
    return f"core.pagination:{','.join(order)}:{among}"
