"""CSV written by PostgreSQL itself: COPY, drained in a tight loop."""

import select as waiting
import time
from collections.abc import Callable, Generator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from backoffice.reports.csv_encoding import CHUNK_BYTES, Chunk, quotes_everything
from backoffice.reports.telling import Select

REFUSED_WITHIN = 0.02  # seconds
LOOKS_EVERY = 1.0  # seconds: so long a server that is silent keeps this process from seeing that it is to end

Check = Callable[[], object]
"""Raises what ends the work, if anything does."""


class _Arrivals:
    """What the server sends. It may find nothing for minutes: each second meanwhile `check` is called."""

    def __init__(self, pgconn: PGconn, check: Check) -> None:
        self._pgconn, self._check = pgconn, check
        self._arrived = waiting.poll()
        self._arrived.register(pgconn.socket, waiting.POLLIN)

    def take_in(self, at_most: float = LOOKS_EVERY) -> None:
        """Take in what was sent; wait for it, no longer than this many seconds."""
        self._check()
        if self._arrived.poll(at_most * 1000):
            self._pgconn.consume_input()


def copied(
    select: Select, connection: BaseDatabaseWrapper, *, headings: Chunk, columns: int, check: Check
) -> Generator[Chunk, None, None]:
    """The headings, then what the server writes, in pieces of at least 128 kB.

    Raises psycopg's errors, and what `check` raises.

    What the server refuses within a moment is raised before the headings. It says nothing of its consent until its
    first 8 kB are full, so after that moment they come without.
    """
    pgconn: PGconn = connection.connection.pgconn
    pgconn.send_query(_statement(select, connection, columns).encode())
    arrivals = _Arrivals(pgconn, check)
    deadline = time.monotonic() + REFUSED_WITHIN
    while pgconn.is_busy() and (left := deadline - time.monotonic()) > 0:
        arrivals.take_in(left)
    has_begun = not pgconn.is_busy()
    if has_begun:
        _check(_result(pgconn, arrivals), ExecStatus.COPY_OUT)
    yield headings
    if not has_begun:
        _check(_result(pgconn, arrivals), ExecStatus.COPY_OUT)
    yield from _drained(pgconn, arrivals)
    while result := _result(pgconn, arrivals):  # only now is the file whole
        _check(result, ExecStatus.COMMAND_OK)


def _statement(select: Select, connection: BaseDatabaseWrapper, columns: int) -> str:
    with connection.cursor() as cursor:
        told = cursor.cursor.mogrify(select.sql, select.parameters)
    quoting = ", FORCE_QUOTE *" if quotes_everything(columns) else ""
    return f"COPY ({told}) TO STDOUT (FORMAT csv{quoting})"


def _drained(pgconn: PGconn, arrivals: _Arrivals) -> Generator[Chunk, None, None]:
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


def _chunk(rows: list[Any]) -> Chunk:
    count = len(rows)
    rows.append(b"")
    content = b"\r\n".join(rows)
    rows.clear()
    return Chunk(content, count)


def _result(pgconn: PGconn, arrivals: _Arrivals) -> PGresult | None:
    """The next result. libpq would wait for it as well, and keep every other thread of this process waiting too."""
    while pgconn.is_busy():
        arrivals.take_in()
    return pgconn.get_result()


def _check(result: PGresult | None, wanted: ExecStatus) -> None:
    if result is not None and result.status != wanted:
        raise errors.error_from_result(result)
