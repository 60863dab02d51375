"""CSV (RFC 4180, UTF-8), encoded in Python or by PostgreSQL's COPY, with identical bytes."""

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
_ENCODING_BATCH = 200
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class FileChunk:
    """Some bytes of the file, and the number of rows that end in them."""

    content: bytes
    rows: int


def csv_header(header: Sequence[str], *, has_byte_order_mark: bool) -> bytes:
    """The header line, after the byte order mark if `has_byte_order_mark`."""
    buffer = io.StringIO(newline="")
    _csv_writer(buffer, len(header)).writerow(header)
    return ((_BYTE_ORDER_MARK if has_byte_order_mark else "") + buffer.getvalue()).encode()


def encode_csv(rows: Iterable[Sequence[str | None]], *, columns: int) -> Generator[FileChunk, None, None]:
    """The rows in chunks. Reads `rows` lazily, in small batches, and holds one chunk."""
    buffer, pending_rows, rows = io.StringIO(newline=""), 0, iter(rows)
    writer = _csv_writer(buffer, columns)
    while batch := list(islice(rows, _ENCODING_BATCH)):
        _write_rows(batch, buffer, writer, columns)
        pending_rows += len(batch)
        if buffer.tell() >= CHUNK_BYTES:
            yield _drain_buffer(buffer, pending_rows)
            pending_rows = 0
    if pending_rows:
        yield _drain_buffer(buffer, pending_rows)


def _csv_writer(buffer: io.StringIO, columns: int) -> Any:
    if quotes_every_cell(columns):
        return csv.writer(buffer, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    return csv.writer(buffer, lineterminator="\r\n")


def _write_rows(batch: list[Sequence[str | None]], buffer: io.StringIO, writer: Any, columns: int) -> None:
    """Most rows need no quotes: joining them and searching for special characters is several times faster."""
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


ERROR_WAIT_SECONDS = 0.02
POLL_SECONDS = 1.0  # how long a silent server can delay the check for a stop request

StopCheck = Callable[[], object]
"""Raises an exception to stop the work; otherwise does nothing."""


class _IncomingData:
    """Wait for data from the server. Queries may take minutes: `check` is called every second meanwhile."""

    def __init__(self, pgconn: PGconn, check: StopCheck) -> None:
        self._pgconn, self._check = pgconn, check
        self._poll = waiting.poll()
        self._poll.register(pgconn.socket, waiting.POLLIN)

    def receive(self, at_most: float = POLL_SECONDS) -> None:
        """Read what the server sent, waiting at most this many seconds for it."""
        self._check()
        if self._poll.poll(at_most * 1000):
            self._pgconn.consume_input()


def copy_csv(
    select: TextSelect,
    connection: BaseDatabaseWrapper,
    *,
    headings: FileChunk,
    columns: int,
    check: StopCheck,
) -> Generator[FileChunk, None, None]:
    """The headings, then the server's output, in chunks of at least 128 kB.

    Raises psycopg's errors, and what `check` raises.

    An error that the server reports within `ERROR_WAIT_SECONDS` is raised before the headings. The server reports
    success only once its first 8 kB are full, so after that time the headings are sent without waiting.
    """
    pgconn: PGconn = connection.connection.pgconn
    pgconn.send_query(copy_sql(select, connection, columns).encode())
    incoming = _IncomingData(pgconn, check)
    deadline = time.monotonic() + ERROR_WAIT_SECONDS
    while pgconn.is_busy() and (remaining := deadline - time.monotonic()) > 0:
        incoming.receive(remaining)
    has_started = not pgconn.is_busy()
    if has_started:
        _check_result(_result(pgconn, incoming), ExecStatus.COPY_OUT)
    yield headings
    if not has_started:
        _check_result(_result(pgconn, incoming), ExecStatus.COPY_OUT)
    yield from _drain_copy(pgconn, incoming)
    while result := _result(pgconn, incoming):  # only now is the file complete
        _check_result(result, ExecStatus.COMMAND_OK)


def copy_sql(select: TextSelect, connection: BaseDatabaseWrapper, columns: int) -> str:
    with connection.cursor() as cursor:
        statement = cursor.cursor.mogrify(select.sql, select.parameters)
    quoting = ", FORCE_QUOTE *" if quotes_every_cell(columns) else ""
    return f"COPY ({statement}) TO STDOUT (FORMAT csv{quoting})"


def _drain_copy(pgconn: PGconn, incoming: _IncomingData) -> Generator[FileChunk, None, None]:
    """libpq returns one row at a time, ending in a line feed; in the file each row ends in CRLF (RFC 4180).

    psycopg's own `copy()` would pass each row through its generators; here a row costs one call.
    """
    get_row = pgconn.get_copy_data
    rows: list[Any] = []
    size = 0
    while True:
        length, row = get_row(1)
        if length > 0:
            rows.append(row[:-1])
            size += length
            if size >= CHUNK_BYTES:
                yield _chunk(rows)
                size = 0
        elif length == 0:
            incoming.receive()
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


def _result(pgconn: PGconn, incoming: _IncomingData) -> PGresult | None:
    """The next result. Waiting in libpq itself would block every other thread of this process."""
    while pgconn.is_busy():
        incoming.receive()
    return pgconn.get_result()


def _check_result(result: PGresult | None, expected: ExecStatus) -> None:
    if result is not None and result.status != expected:
        raise errors.error_from_result(result)
