"""What a report is: one declaration says everything about it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypeAlias, TypeVar

from django import forms
from django.db.models import Model, QuerySet

from backoffice.accounts.models import User
from backoffice.core.pagination import keyset_page

Row = TypeVar("Row")
Stored = TypeVar("Stored", bound=Model)
Filters: TypeAlias = Mapping[str, Any]

BATCH = 1000


@dataclass(frozen=True)
class Period:
    """The first and the last day that a report is about; None where it is open."""

    since: date | None = None
    until: date | None = None


def chosen_period(filters: Filters, _today: date) -> Period:
    """The two days of a `PeriodForm`."""
    return Period(filters["since"], filters["until"])


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A heading, and the value under it."""

    header: str
    value: Callable[[Row], object]


@dataclass(frozen=True)
class Report(Generic[Row]):
    """A table that people can narrow down and take away.

    `rows` yields what the person may see, lazily. What it raises before the first row is told on a page, and
    what it raises later breaks the file off.
    """

    name: str
    title: str
    about: str
    permission: str
    form: type[forms.Form]
    columns: tuple[Column[Row], ...]
    rows: Callable[[User, Filters], Iterator[Row]]
    period: Callable[[Filters, date], Period] = chosen_period

    @property
    def header(self) -> list[str]:
        """The headings of the columns."""
        return [column.header for column in self.columns]

    def cells(self, row: Row) -> list[object]:
        """The values of one row, in the order of the columns."""
        return [column.value(row) for column in self.columns]


def in_batches(queryset: QuerySet[Stored], *, order: tuple[str, ...]) -> Iterator[Stored]:
    """Every row of the query, holding one batch at a time.

    Batches, not one open cursor: between two of them the connection is free, so nothing keeps SQLite from
    writing or makes PostgreSQL set the whole result aside first.
    """
    cursor: str | None = None
    while True:
        page = keyset_page(queryset, order=order, cursor=cursor, size=BATCH)
        yield from page.rows
        cursor = page.next_cursor
        if cursor is None:
            return
