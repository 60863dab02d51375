"""What a report is: one declaration says everything about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Generic, TypeVar

from django import forms
from django.db.models import Model, QuerySet

from backoffice.accounts.models import User
from backoffice.core.pagination import keyset_page
from backoffice.core.period import PeriodForm

Row = TypeVar("Row")
Stored = TypeVar("Stored", bound=Model)
Filters = TypeVar("Filters", bound=forms.Form)

BATCH = 1000


@dataclass(frozen=True)
class Period:
    """The first and the last day that a report is about; None where it is open."""

    since: date | None = None
    until: date | None = None


def chosen_period(form: PeriodForm, _today: date) -> Period:
    """The two days that the person chose."""
    return Period(form.cleaned_data["since"], form.cleaned_data["until"])


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A heading, and the value under it."""

    header: str
    value: Callable[[Row], object]


@dataclass(frozen=True)
class Report(Generic[Row, Filters]):
    """A table that people can narrow down and take away.

    Every function gets a valid form. `rows` yields what the person may see, lazily. What it raises before the first
    row is told on a page, and what it raises later breaks the file off.
    """

    name: str
    title: str
    about: str
    permission: str
    form: type[Filters]
    columns: tuple[Column[Row], ...]
    rows: Callable[[User, Filters], Iterator[Row]]
    period: Callable[[Filters, date], Period]

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
