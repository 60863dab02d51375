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
from backoffice.reports.models import work_folder
from backoffice.reports.rendering.cells import cell_text
from backoffice.reports.rendering.csv import FileChunk, StopCheck, copy_csv, csv_header, encode_csv
from backoffice.reports.rendering.database import fetch_texts, snapshot_connection, text_select
from backoffice.reports.rendering.xlsx import encode_xlsx
from backoffice.reports.report import ComputedReport, ExportRequest, FileFormat, StoredReport

TextRow = tuple[str | None, ...]
Item = TypeVar("Item")


def csv_chunks(
    export_request: ExportRequest,
    *,
    at_most: timedelta,
    check: StopCheck = background.raise_if_stop_requested,
) -> Generator[FileChunk, None, None]:
    """The file in chunks: first the header line, once the first rows can be read, then the rows."""
    match export_request.report:
        case StoredReport() as report:
            yield from _stored_csv_chunks(export_request, report, at_most, check)
        case ComputedReport() as report:
            rows = _with_first_read(_computed_rows(export_request, report))
            yield _header_chunk(export_request)
            yield from encode_csv(rows, columns=len(export_request.columns))


def text_rows(export_request: ExportRequest, *, at_most: timedelta) -> Generator[TextRow, None, None]:
    """The rows as texts, without the header."""
    match export_request.report:
        case StoredReport() as report:
            with snapshot_connection(export_request.zone, at_most=at_most) as connection:
                yield from fetch_texts(text_select(export_request, report, connection), connection)
        case ComputedReport() as report:
            yield from _computed_rows(export_request, report)


def _stored_csv_chunks(
    export_request: ExportRequest, report: StoredReport[Any], at_most: timedelta, check: StopCheck
) -> Generator[FileChunk, None, None]:
    columns = len(export_request.columns)
    with snapshot_connection(export_request.zone, at_most=at_most) as connection:
        select = text_select(export_request, report, connection)
        if select is not None and connection.vendor == "postgresql":
            headings = _header_chunk(export_request)
            yield from copy_csv(select, connection, headings=headings, columns=columns, check=check)
        else:
            rows = _with_first_read(fetch_texts(select, connection))
            yield _header_chunk(export_request)
            yield from encode_csv(rows, columns=columns)


def _header_chunk(export_request: ExportRequest) -> FileChunk:
    return FileChunk(
        csv_header(export_request.headings, has_byte_order_mark=export_request.has_byte_order_mark), 0
    )


def _computed_rows(export_request: ExportRequest, report: ComputedReport[Any, Any]) -> Iterator[TextRow]:
    values = [column.function for column in export_request.columns]
    for row in report.rows(export_request.user, export_request.form):
        background.raise_if_stop_requested()
        yield tuple(cell_text(value(row)) for value in values)


def _with_first_read(rows: Iterator[Item]) -> Iterator[Item]:
    """The same rows, with the first one already read."""
    return chain(list(islice(rows, 1)), rows)


def file_chunks(
    export_request: ExportRequest,
    *,
    at_most: timedelta,
    check: StopCheck = background.raise_if_stop_requested,
) -> Generator[FileChunk, None, None]:
    """The whole file. The first step fails if the report cannot be read at all.

    While PostgreSQL searches for the next rows of a CSV, `check` is called every second and may raise to stop
    it.
    """
    if export_request.format == FileFormat.XLSX:
        return encode_xlsx(
            export_request.headings, text_rows(export_request, at_most=at_most), folder=str(work_folder())
        )
    return csv_chunks(export_request, at_most=at_most, check=check)


def file_name(export_request: ExportRequest, as_of: datetime | None = None) -> str:
    """`countersign-<report>-<first day>-to-<last day>.csv`, or with the time of its data if no day is set.

    Days are in the report's own time zone, if it has one, otherwise in the requested zone; the time is UTC.
    """
    now = timezone.now()
    today = now.astimezone(export_request.report.zone_of_days(export_request.zone)).date()
    period = export_request.report.period(export_request.form)
    start, end = f"countersign-{export_request.report.name}", export_request.format.value
    if period.since is None and period.until is None:
        return f"{start}-as-of-{(as_of or now).astimezone(UTC):%Y-%m-%dT%H%MZ}.{end}"
    return f"{start}-{period.since or 'beginning'}-to-{period.until or today}.{end}"
