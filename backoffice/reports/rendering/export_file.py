"""An export request as a file: its chunks, as CSV or Excel, and its name.

The generators fail at their first step if the report cannot be read at all; closing one cancels its query.
Rows computed in Python use the time zone that is current at each step.
"""

from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, TypeVar

from django.utils import timezone

from backoffice.core import background
from backoffice.reports.models import export_folder
from backoffice.reports.rendering.cells import cell_text
from backoffice.reports.rendering.csv import FileChunk, StopCheck, copy_csv, csv_header, encode_csv
from backoffice.reports.rendering.database import fetch_texts, snapshot_connection, text_select
from backoffice.reports.rendering.xlsx import encode_xlsx
from backoffice.reports.report import ComputedReport, ExportRequest, FileFormat, StoredReport

TextRow = tuple[str | None, ...]
Item = TypeVar("Item")


def csv_chunks(
    wanted: ExportRequest, *, at_most: timedelta, check: StopCheck = background.raise_if_stop_requested
) -> Generator[FileChunk, None, None]:
    """The file in chunks: first the header line, once the first rows can be read, then the rows."""
    match wanted.report:
        case StoredReport() as report:
            yield from _stored_csv_chunks(wanted, report, at_most, check)
        case ComputedReport() as report:
            rows = _with_first_read(_computed_rows(wanted, report))
            yield _header_chunk(wanted)
            yield from encode_csv(rows, columns=len(wanted.columns))


def text_rows(wanted: ExportRequest, *, at_most: timedelta) -> Generator[TextRow, None, None]:
    """The rows as texts, without the header."""
    match wanted.report:
        case StoredReport() as report:
            with snapshot_connection(wanted.zone, at_most=at_most) as connection:
                yield from fetch_texts(text_select(wanted, report, connection), connection)
        case ComputedReport() as report:
            yield from _computed_rows(wanted, report)


def _stored_csv_chunks(
    wanted: ExportRequest, report: StoredReport[Any], at_most: timedelta, check: StopCheck
) -> Generator[FileChunk, None, None]:
    columns = len(wanted.columns)
    with snapshot_connection(wanted.zone, at_most=at_most) as connection:
        select = text_select(wanted, report, connection)
        if select is not None and connection.vendor == "postgresql":
            headings = _header_chunk(wanted)
            yield from copy_csv(select, connection, headings=headings, columns=columns, check=check)
        else:
            rows = _with_first_read(fetch_texts(select, connection))
            yield _header_chunk(wanted)
            yield from encode_csv(rows, columns=columns)


def _header_chunk(wanted: ExportRequest) -> FileChunk:
    return FileChunk(csv_header(wanted.header, has_mark=wanted.has_mark), 0)


def _computed_rows(wanted: ExportRequest, report: ComputedReport[Any, Any]) -> Iterator[TextRow]:
    values = [column.function for column in wanted.columns]
    for row in report.rows(wanted.user, wanted.form):
        background.raise_if_stop_requested()
        yield tuple(cell_text(value(row)) for value in values)


def _with_first_read(rows: Iterator[Item]) -> Iterator[Item]:
    """The same rows, with the first one already read."""
    return chain(list(islice(rows, 1)), rows)


def file_chunks(
    wanted: ExportRequest, *, at_most: timedelta, check: StopCheck = background.raise_if_stop_requested
) -> Generator[FileChunk, None, None]:
    """The whole file. The first step fails if the report cannot be read at all.

    While PostgreSQL searches for the next rows of a CSV, `check` is called every second and may raise to stop
    it.
    """
    if wanted.format == FileFormat.XLSX:
        return encode_xlsx(wanted.header, text_rows(wanted, at_most=at_most), folder=str(export_folder()))
    return csv_chunks(wanted, at_most=at_most, check=check)


def file_name(wanted: ExportRequest, as_of: datetime | None = None) -> str:
    """`countersign-<report>-<first day>-to-<last day>.csv`, or with the time of its data if no day is set.

    Days are in the report's own time zone, if it has one, otherwise in the requested zone; the time is UTC.
    """
    now = timezone.now()
    today = now.astimezone(wanted.report.zone_of_days(wanted.zone)).date()
    period = wanted.report.period(wanted.form)
    start, end = f"countersign-{wanted.report.name}", wanted.format.value
    if period.since is None and period.until is None:
        return f"{start}-as-of-{(as_of or now).astimezone(UTC):%Y-%m-%dT%H%MZ}.{end}"
    return f"{start}-{period.since or 'beginning'}-to-{period.until or today}.{end}"
