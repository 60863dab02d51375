"""CSV (RFC 4180, UTF-8), encoded here or copied by PostgreSQL (COPY): both make the same bytes of the same rows."""

import csv
import io
import select as waiting
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from backoffice.reports.rendering.cells import quotes_every_cell
from backoffice.reports.rendering.database import TextSelect

CHUNK_BYTES = 131_072
_ENCODED_AT_ONCE = 200
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class FileChunk:
    """Some bytes of the file, and how many rows end in them."""

    content: bytes
    rows: int


def csv_header(header: Sequence[str], *, has_mark: bool) -> bytes:
    """The line of headings, behind the byte order mark if it `has_mark`."""
    buffer = io.StringIO(newline="")
    _csv_writer(buffer, len(header)).writerow(header)
    return ((_BYTE_ORDER_MARK if has_mark else "") + buffer.getvalue()).encode()


def encode_csv(rows: Iterable[Sequence[str | None]], *, columns: int) -> Generator[FileChunk, None, None]:
    """The rows in chunks. Takes some rows from `rows` only when they are needed; holds one chunk."""
    buffer, waiting, rows = io.StringIO(newline=""), 0, iter(rows)
    writer = _csv_writer(buffer, columns)
    while batch := list(islice(rows, _ENCODED_AT_ONCE)):
        _write_rows(batch, buffer, writer, columns)
        waiting += len(batch)
        if buffer.tell() >= CHUNK_BYTES:
            yield _drain_buffer(buffer, waiting)
            waiting = 0
    if waiting:
        yield _drain_buffer(buffer, waiting)


def _csv_writer(buffer: io.StringIO, columns: int) -> Any:
    if quotes_every_cell(columns):
        return csv.writer(buffer, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    return csv.writer(buffer, lineterminator="\r\n")


def _write_rows(batch: list[Sequence[str | None]], buffer: io.StringIO, writer: Any, columns: int) -> None:
    """Most rows need no quotes: joining and searching them is several times faster than looking at each character."""
    for row in batch:
        line = ",".join([text or "" for text in row])
        if (
            quotes_every_cell(columns)
            or line.count(",") >= columns
            or '"' in line
            or "\n" in line
            or "\r" in line
        ):
            writer.writerow(row)
        else:
            buffer.write(line)
            buffer.write("\r\n")


def _drain_buffer(buffer: io.StringIO, rows: int) -> FileChunk:
    content = buffer.getvalue().encode("utf-8", "replace")
    buffer.seek(0)
    buffer.truncate()
    return FileChunk(content, rows)


REFUSED_WITHIN = 0.02  # seconds
POLL_SECONDS = (
    1.0  # seconds: so long a server that is silent keeps this process from seeing that it is to end
)

StopCheck = Callable[[], object]
"""Raises what ends the work, if anything does."""


class _IncomingData:
    """What the server sends. It may find nothing for minutes: each second meanwhile `check` is called."""

    def __init__(self, pgconn: PGconn, check: StopCheck) -> None:
        self._pgconn, self._check = pgconn, check
        self._arrived = waiting.poll()
        self._arrived.register(pgconn.socket, waiting.POLLIN)

    def take_in(self, at_most: float = POLL_SECONDS) -> None:
        """Take in what was sent; wait for it, no longer than this many seconds."""
        self._check()
        if self._arrived.poll(at_most * 1000):
            self._pgconn.consume_input()


def copy_csv(
    select: TextSelect,
    connection: BaseDatabaseWrapper,
    *,
    headings: FileChunk,
    columns: int,
    check: StopCheck,
) -> Generator[FileChunk, None, None]:
    """The headings, then what the server writes, in pieces of at least 128 kB.

    Raises psycopg's errors, and what `check` raises.

    What the server refuses within a moment is raised before the headings. It says nothing of its consent until its
    first 8 kB are full, so after that moment they come without.
    """
    pgconn: PGconn = connection.connection.pgconn
    pgconn.send_query(copy_sql(select, connection, columns).encode())
    arrivals = _IncomingData(pgconn, check)
    deadline = time.monotonic() + REFUSED_WITHIN
    while pgconn.is_busy() and (left := deadline - time.monotonic()) > 0:
        arrivals.take_in(left)
    has_begun = not pgconn.is_busy()
    if has_begun:
        _check_result(_result(pgconn, arrivals), ExecStatus.COPY_OUT)
    yield headings
    if not has_begun:
        _check_result(_result(pgconn, arrivals), ExecStatus.COPY_OUT)
    yield from _drain_copy(pgconn, arrivals)
    while result := _result(pgconn, arrivals):  # only now is the file whole
        _check_result(result, ExecStatus.COMMAND_OK)


def copy_sql(select: TextSelect, connection: BaseDatabaseWrapper, columns: int) -> str:
    with connection.cursor() as cursor:
        told = cursor.cursor.mogrify(select.sql, select.parameters)
    quoting = ", FORCE_QUOTE *" if quotes_every_cell(columns) else ""
    return f"COPY ({told}) TO STDOUT (FORMAT csv{quoting})"


def _drain_copy(pgconn: PGconn, arrivals: _IncomingData) -> Generator[FileChunk, None, None]:
    """libpq hands out one row at a time, with a line feed at its end; in the file a row ends as RFC 4180 wants.

    Iterating psycopg's own `copy()` would take each row through its generators; here a row costs one call.
    """
    take = pgconn.get_copy_data
    rows: list[Any] = []
    size = 0
    while True:
        length, row = take(1)
        if length > 0:
            rows.append(row[:-1])
            size += length
            if size >= CHUNK_BYTES:
                yield _chunk(rows)
                size = 0
        elif length == 0:
            arrivals.take_in()
        else:
            break
    if rows:
        yield _chunk(rows)


def _chunk(rows: list[Any]) -> FileChunk:
    count = len(rows)
    rows.append(b"")
    content = b"\r\n".join(rows)
    rows.clear()
    return FileChunk(content, count)


def _result(pgconn: PGconn, arrivals: _IncomingData) -> PGresult | None:
    """The next result. libpq would wait for it as well, and keep every other thread of this process waiting too."""
    while pgconn.is_busy():
        arrivals.take_in()
    return pgconn.get_result()


def _check_result(result: PGresult | None, wanted: ExecStatus) -> None:
    if result is not None and result.status != wanted:
        raise errors.error_from_result(result)
