"""What a report is (one declaration: columns, filters, permissions, query), and what a person requests of one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Generic, TypeVar, cast
from zoneinfo import ZoneInfo

from django import forms
from django.db import models
from django.db.models import Case, F, Model, QuerySet, TextChoices, TextField, Value, When
from django.db.models.expressions import Combinable

from backoffice.accounts.models import User
from backoffice.core.web.forms import PeriodForm, end_of_day, start_of_day
from backoffice.core.web.pagination import keyset_page

Row = TypeVar("Row")
Stored = TypeVar("Stored", bound=Model)
Filters = TypeVar("Filters", bound=forms.Form)

BATCH = 1000


@dataclass(frozen=True)
class ReportPeriod:
    """The first and the last day that a report is about; None where it is open."""

    since: date | None = None
    until: date | None = None


def form_period(form: PeriodForm, _today: date) -> ReportPeriod:
    """The two days that the person chose."""
    return ReportPeriod(form.cleaned_data["since"], form.cleaned_data["until"])


def period_lookups(field: str, form: PeriodForm) -> dict[str, datetime]:
    """What narrows this field to the chosen days, for `filter`."""
    since, until = form.cleaned_data["since"], form.cleaned_data["until"]
    return {
        **({f"{field}__gte": start_of_day(since)} if since else {}),
        **({f"{field}__lt": end_of_day(until)} if until else {}),
    }


def labelled(field: str, choices: type[TextChoices]) -> Case:
    """The words for the code in this field, made by the database."""
    words = [When(**{field: code}, then=Value(str(label))) for code, label in choices.choices]
    return Case(*words, default=F(field), output_field=TextField())


def no_period(_form: forms.Form, _today: date) -> ReportPeriod:
    """No days: what the report is about is what it is now."""
    return ReportPeriod()


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A heading, what stands under it in a sentence, and where it comes from.

    In a `StoredReport` the value is the name of a field (`maker__full_name`) or an expression of the database; in a
    `Report` a function of the row.
    """

    header: str
    about: str
    value: Callable[[Row], object] | Combinable | str

    @property
    def function(self) -> Callable[[Row], object]:
        """The value as a function of the row."""
        return cast("Callable[[Row], object]", self.value)

    @property
    def expression(self) -> Combinable:
        """The value as an expression of the database."""
        return F(self.value) if isinstance(self.value, str) else cast(Combinable, self.value)


@dataclass(frozen=True, kw_only=True)
class ReportDeclaration(Generic[Filters]):
    """What every report says of itself. Every function gets a valid form, and a person who has all `permissions`."""

    name: str
    title: str
    about: str
    permissions: tuple[str, ...]
    form: type[Filters]
    columns: tuple[Column[Any], ...]
    period: Callable[[Filters, date], ReportPeriod]
    own_zone: ZoneInfo | None = None  # of its days, where they are not those of who asks
    told_up_to: Callable[[], datetime | None] | None = None  # if it reads what the service lists, see `as_of`

    def zone_of_days(self, asked_in: ZoneInfo) -> ZoneInfo:
        """The zone in which its days begin and end, for somebody who asks in this one."""
        return self.own_zone or asked_in

    def as_of(self) -> datetime | None:
        """Up to when everything that the service listed can be read in it; None if that is not known, or not asked."""
        return self.told_up_to() if self.told_up_to else None

    @property
    def header(self) -> list[str]:
        """The headings of the columns."""
        return [column.header for column in self.columns]

    def chosen(self, headers: list[str]) -> tuple[Column[Any], ...]:
        """The columns under these headings, in the order of the declaration; all of them for none."""
        return tuple(one for one in self.columns if one.header in headers) or self.columns

    def may_be_read_by(self, user: User) -> bool:
        """Whether the person has every right that it asks for."""
        return user.has_perms(self.permissions)

    @property
    def has_days(self) -> bool:
        """Whether it can be narrowed to a first and a last day."""
        return issubclass(self.form, PeriodForm)


@dataclass(frozen=True, kw_only=True)
class ComputedReport(ReportDeclaration[Filters], Generic[Row, Filters]):
    """A table whose rows this program works out one by one.

    `rows` yields what the person may see, lazily. What it raises before the first row is told on a page, and what it
    raises later breaks the file off. `counted` is a query with as many rows, where there is one.
    """

    rows: Callable[[User, Filters], Iterator[Row]]
    counted: Callable[[User, Filters], QuerySet[Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class StoredReport(ReportDeclaration[Filters]):
    """A table that the database can tell by itself, to the last cell: so it writes the file as well.

    `query` is what the person may see. Every column is a field or an expression over it, of a kind that `sql_cells`
    knows; `order` names columns that are together unique.
    """

    query: Callable[[User, Filters], QuerySet[Any]]
    order: tuple[str, ...]


AnyReport = ComputedReport[Any, Any] | StoredReport[Any]


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


class FileFormat(models.TextChoices):
    """The kinds of file."""

    CSV = "csv", "CSV"
    XLSX = "xlsx", "Excel (XLSX)"


@dataclass(frozen=True)
class ExportRequest:
    """One export: a report for a person, narrowed by a valid form, with times in this zone.

    `has_mark` puts the byte order mark before a CSV, by which some versions of Excel know UTF-8.
    """

    report: AnyReport
    user: User
    form: Any
    zone: ZoneInfo
    columns: tuple[Column[Any], ...]
    format: FileFormat = FileFormat.CSV
    has_mark: bool = False

    @property
    def header(self) -> list[str]:
        """The headings of the chosen columns."""
        return [column.header for column in self.columns]

    @property
    def filters(self) -> dict[str, str]:
        """What narrows it, for the record."""
        return {name: str(value) for name, value in self.form.cleaned_data.items() if value}
