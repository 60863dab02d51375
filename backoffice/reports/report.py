"""The declaration of a report (columns, filters, permissions, query), and a person's request for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from zoneinfo import ZoneInfo

from django import forms
from django.db import models
from django.db.models import Case, F, Model, QuerySet, TextChoices, TextField, Value, When
from django.db.models.expressions import Combinable
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.core.web.forms import PeriodForm, end_of_day, start_of_day
from backoffice.core.web.pagination import keyset_page

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Row = TypeVar("Row")
Stored = TypeVar("Stored", bound=Model)
Filters = TypeVar("Filters", bound=forms.Form)

BATCH = 1000


@dataclass(frozen=True)
class ReportPeriod:
    """The first and last day of a report; None if it is open at that end."""

    since: date | None = None
    until: date | None = None


def period_lookups(field: str, form: PeriodForm) -> dict[str, datetime]:
    """Lookups for `filter` that restrict this field to the chosen days."""
    since, until = form.cleaned_data["since"], form.cleaned_data["until"]
    return {
        **({f"{field}__gte": start_of_day(since)} if since else {}),
        **({f"{field}__lt": end_of_day(until)} if until else {}),
    }


def labelled(field: str, choices: type[TextChoices]) -> Callable[[], Case]:
    """The label for the code in this field, as a database expression in the current language."""

    def expression() -> Case:
        labels = [When(**{field: code}, then=Value(str(label))) for code, label in choices.choices]
        return Case(*labels, default=F(field), output_field=TextField())

    return expression


@dataclass(frozen=True)
class Column(Generic[Row]):
    """The name, heading and source of a column. URLs and stored requests contain names, files contain headings.

    In a `StoredReport` the value is a field name (such as `approver__full_name`), a database expression, or a
    function that returns one for the current language; in a `ComputedReport` it is an attribute of the row (such
    as `preparer.full_name`) or a function of the row.
    """

    name: str
    heading: "StrOrPromise"
    value: Callable[[Row], object] | Callable[[], Combinable] | Combinable | str

    @property
    def function(self) -> Callable[[Row], object]:
        """The value as a function of the row."""
        if isinstance(self.value, str):
            return attrgetter(self.value)
        return cast("Callable[[Row], object]", self.value)

    @property
    def expression(self) -> Combinable:
        """The value as a database expression."""
        if isinstance(self.value, str):
            return F(self.value)
        return (
            self.value
            if isinstance(self.value, Combinable)
            else cast("Callable[[], Combinable]", self.value)()
        )


@dataclass(frozen=True, kw_only=True)
class ReportDeclaration(Generic[Filters]):
    """What every report declares. Its functions get a valid form, and a person who has all `permissions`."""

    name: str
    title: "StrOrPromise"
    about: "StrOrPromise"
    permissions: tuple[str, ...]
    form: type[Filters]
    columns: tuple[Column[Any], ...]
    own_zone: ZoneInfo | None = None  # time zone of its days, if it is not that of the person
    synced_until: Callable[[], datetime | None] | None = None  # for reports that read the mirror, see `as_of`

    def zone_of_days(self, viewer_zone: ZoneInfo) -> ZoneInfo:
        """The time zone in which its days begin and end, for a person in the zone `viewer_zone`."""
        return self.own_zone or viewer_zone

    def as_of(self) -> datetime | None:
        """Up to when the mirror is complete; None if unknown, or if it does not read the mirror."""
        return self.synced_until() if self.synced_until else None

    @property
    def audit_target(self) -> str:
        """The report as the audit log names it: in English, whatever the language of the page."""
        with translation.override("en"):
            return f"the report {self.title}"

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def columns_named(self, names: list[str]) -> tuple[Column[Any], ...]:
        """The columns with these names, in declaration order; all columns if none is given."""
        return tuple(one for one in self.columns if one.name in names) or self.columns

    def headings_of(self, names: list[str]) -> list[str]:
        """The headings of the columns with these names, in declaration order."""
        return [str(one.heading) for one in self.columns if one.name in names]

    def may_be_read_by(self, user: User) -> bool:
        return user.has_perms(self.permissions)

    @property
    def has_days(self) -> bool:
        """Whether it can be restricted to a period."""
        return issubclass(self.form, PeriodForm)

    def period(self, form: forms.Form) -> ReportPeriod:
        """The days chosen in this valid form; open at both ends for a report of the current state."""
        return ReportPeriod(form.cleaned_data.get("since"), form.cleaned_data.get("until"))


@dataclass(frozen=True, kw_only=True)
class ComputedReport(ReportDeclaration[Filters], Generic[Row, Filters]):
    """A table whose rows are computed in Python one by one.

    `rows` yields lazily what the person may see. An error before the first row is shown on a page; a later
    one cuts the file off. `counted` is a query with the same number of rows, if there is one.
    """

    rows: Callable[[User, Filters], Iterator[Row]]
    counted: Callable[[User, Filters], QuerySet[Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class StoredReport(ReportDeclaration[Filters]):
    """A table that the database can produce completely, as text cells, so that it can write the file itself.

    `query` is what the person may see. Every column is a field or an expression over it, of a type that
    `rendering.cells` supports; `order` names columns that are unique together.
    """

    query: Callable[[User, Filters], QuerySet[Any]]
    order: tuple[str, ...]


AnyReport = ComputedReport[Any, Any] | StoredReport[Any]


def in_batches(queryset: QuerySet[Stored], *, order: tuple[str, ...]) -> Iterator[Stored]:
    """Every row of the query, holding one batch in memory.

    Keyset batches instead of one open cursor: the connection is free between two batches, so SQLite can write
    and PostgreSQL need not materialise the whole result first.
    """
    cursor: str | None = None
    while True:
        page = keyset_page(queryset, order=order, cursor=cursor, size=BATCH)
        yield from page.rows
        cursor = page.next_cursor
        if cursor is None:
            return


class FileFormat(models.TextChoices):
    CSV = "csv", "CSV"
    XLSX = "xlsx", _("Excel (XLSX)")


@dataclass(frozen=True)
class ExportRequest:
    """One export: a report for a person, restricted by a valid form, with times in this zone, in this language.

    `has_byte_order_mark` adds the byte order mark to a CSV, by which some versions of Excel detect UTF-8.
    """

    report: AnyReport
    user: User
    form: Any
    zone: ZoneInfo
    columns: tuple[Column[Any], ...]
    format: FileFormat = FileFormat.CSV
    has_byte_order_mark: bool = False
    language: str = "en"

    @property
    def headings(self) -> list[str]:
        """The headings of the chosen columns, in the current language."""
        return [str(column.heading) for column in self.columns]

    @contextmanager
    def localized(self) -> Iterator[None]:
        """Activates the time zone and the language of the file."""
        with timezone.override(self.zone), translation.override(self.language):
            yield

    @property
    def filters(self) -> dict[str, str]:
        """The filters, for the audit log."""
        return {
            name: str(value)
            for name, value in self.form.cleaned_data.items()
            if value not in ("", None) and value is not False
        }
