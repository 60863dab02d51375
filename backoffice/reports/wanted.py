"""What a person wants of a report: which rows, which columns, in what kind of file."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.db import models

from backoffice.accounts.models import User
from backoffice.reports.report import AnyReport, Column


class Format(models.TextChoices):
    """The kinds of file."""

    CSV = "csv", "CSV"
    XLSX = "xlsx", "Excel (XLSX)"


@dataclass(frozen=True)
class Wanted:
    """One export: a report for a person, narrowed by a valid form, with times in this zone.

    `has_mark` puts the byte order mark before a CSV, by which some versions of Excel know UTF-8.
    """

    report: AnyReport
    user: User
    form: Any
    zone: ZoneInfo
    columns: tuple[Column[Any], ...]
    format: Format = Format.CSV
    has_mark: bool = False

    @property
    def header(self) -> list[str]:
        """The headings of the chosen columns."""
        return [column.header for column in self.columns]

    @property
    def filters(self) -> dict[str, str]:
        """What narrows it, for the record."""
        return {name: str(value) for name, value in self.form.cleaned_data.items() if value}
