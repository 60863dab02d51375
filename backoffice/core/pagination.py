"""Keyset pagination: any page costs the same, and rows arriving in between neither repeat nor vanish."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of rows, and opaque cursors of its neighbours (None where there is none)."""

    rows: list[Row]
    next_cursor: str | None
    previous_cursor: str | None


def keyset_page(
    queryset: QuerySet[Row], *, order: tuple[str, ...], cursor: str | None, size: int = 50
) -> Page[Row]:
    """The page that the cursor points at; the first one for no cursor or one that is not ours.

    `order` names columns, `-` for descending, together unique and never null. One query, whatever the depth.
    """
    backwards, position = _read(cursor, order)
    direction = _reverse(order) if backwards else order
    selected = queryset.order_by(*direction)
    if position is not None:
        selected = selected.filter(_after(direction, position))
    rows = list(selected[: size + 1])
    more, rows = len(rows) > size, rows[:size]
    if backwards:
        rows.reverse()
    has_next, has_previous = (bool(rows), more) if backwards else (more, position is not None and bool(rows))
    return Page(
        rows,
        next_cursor=_write(rows[-1], order, backwards=False) if has_next else None,
        previous_cursor=_write(rows[0], order, backwards=True) if has_previous else None,
    )


def _reverse(order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[1:] if name.startswith("-") else f"-{name}" for name in order)


def _after(order: tuple[str, ...], position: list[Any]) -> Q:
    """Rows behind the position: (a, b) > (x, y) written as a >= x and (a > x or (a = x and b > y)).

    The first condition follows from the second. Without it a database would read the index from its beginning.
    """
    comparisons = [(name.lstrip("-"), "lt" if name.startswith("-") else "gt") for name in order]
    behind, equal = Q(), Q()
    for (column, operator), value in zip(comparisons, position, strict=True):
        behind |= equal & Q(**{f"{column}__{operator}": value})
        equal &= Q(**{column: value})
    column, operator = comparisons[0]
    return Q(**{f"{column}__{operator}e": position[0]}) & behind


def _write(row: Model, order: tuple[str, ...], *, backwards: bool) -> str:
    values = [_plain(getattr(row, name.lstrip("-"))) for name in order]
    return signing.Signer(salt=_salt(order)).sign_object([backwards, values])


def _plain(value: object) -> object:
    return value if isinstance(value, int) else str(value)


def _read(cursor: str | None, order: tuple[str, ...]) -> tuple[bool, list[Any] | None]:
    if not cursor:
        return False, None
    try:
        backwards, position = signing.Signer(salt=_salt(order)).unsign_object(cursor)
    except signing.BadSignature:
        return False, None
    return backwards, position


def _salt(order: tuple[str, ...]) -> str:
    """A cursor counts in the order that it was made for, and in no other."""
    return f"core.pagination:{','.join(order)}"
