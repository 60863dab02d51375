"""A report on its way out: as CSV in chunks, or as rows of text for another kind of file.

Both are generators. The first step fails where the report cannot be read at all; whoever stops in the middle closes
them, and the query behind ends. Rows that this program works out take the current time zone of each step.
"""

from collections.abc import Generator, Iterator
from datetime import timedelta
from itertools import chain, islice
from typing import Any, TypeVar

from backoffice.core import stopping
from backoffice.reports.cells import cell
from backoffice.reports.copying import Check, copied
from backoffice.reports.csv_encoding import Chunk, encode, head
from backoffice.reports.report import Report, StoredReport
from backoffice.reports.snapshot import snapshot
from backoffice.reports.telling import select_of, texts
from backoffice.reports.wanted import Wanted

Texts = tuple[str | None, ...]
Item = TypeVar("Item")


def csv_of(
    wanted: Wanted, *, at_most: timedelta, check: Check = stopping.check
) -> Generator[Chunk, None, None]:
    """The file in chunks: the line of headings by itself, once the rows have begun to come, then the rows."""
    match wanted.report:
        case StoredReport() as report:
            yield from _stored_csv(wanted, report, at_most, check)
        case Report() as report:
            rows = _begun(_worked_out(wanted, report))
            yield _headings(wanted)
            yield from encode(rows, columns=len(wanted.columns))


def rows_of(wanted: Wanted, *, at_most: timedelta) -> Generator[Texts, None, None]:
    """The rows as texts, without the headings."""
    match wanted.report:
        case StoredReport() as report:
            with snapshot(wanted.zone, at_most=at_most) as connection:
                yield from texts(select_of(wanted, report, connection), connection)
        case Report() as report:
            yield from _worked_out(wanted, report)


def _stored_csv(
    wanted: Wanted, report: StoredReport[Any], at_most: timedelta, check: Check
) -> Generator[Chunk, None, None]:
    columns = len(wanted.columns)
    with snapshot(wanted.zone, at_most=at_most) as connection:
        select = select_of(wanted, report, connection)
        if select is not None and connection.vendor == "postgresql":
            headings = _headings(wanted)
            yield from copied(select, connection, headings=headings, columns=columns, check=check)
        else:
            rows = _begun(texts(select, connection))
            yield _headings(wanted)
            yield from encode(rows, columns=columns)


def _headings(wanted: Wanted) -> Chunk:
    return Chunk(head(wanted.header, has_mark=wanted.has_mark), 0)


def _worked_out(wanted: Wanted, report: Report[Any, Any]) -> Iterator[Texts]:
    values = [column.function for column in wanted.columns]
    for row in report.rows(wanted.user, wanted.form):
        stopping.check()
        yield tuple(cell(value(row)) for value in values)


def _begun(rows: Iterator[Item]) -> Iterator[Item]:
    """The same rows, with the first one already read."""
    return chain(list(islice(rows, 1)), rows)
