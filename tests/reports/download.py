import csv
import io
from dataclasses import dataclass

from backoffice.reports.definitions.catalogue import REPORTS


@dataclass(frozen=True)
class Download:
    """A file as its reader has it."""

    rows: list[dict[str, str]]
    headers: dict[str, str]


def rows_by_column(name: str, text: str) -> list[dict[str, str]]:
    """The rows of the CSV of this report, by the names of its columns instead of their headings."""
    names = {str(column.heading): column.name for column in REPORTS[name].columns}
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    return [dict(zip((names[heading] for heading in header), row, strict=True)) for row in rows]
