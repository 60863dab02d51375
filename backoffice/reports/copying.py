"""CSV written by PostgreSQL itself: COPY, drained in a tight loop."""

import select as waiting
from collections.abc import Generator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from backoffice.reports.csv_encoding import CHUNK_BYTES, Chunk, quotes_everything
from backoffice.reports.telling import Select


def begin_copy(select: Select, connection: BaseDatabaseWrapper, *, columns: int) -> None:
    """Let the server begin to write. Raises psycopg's errors where it refuses the statement."""
    with connection.cursor() as cursor:
        statement = cursor.cursor.mogrify(select.sql, select.parameters)
    quoting = ", FORCE_QUOTE *" if quotes_everything(columns) else ""
    pgconn = connection.connection.pgconn
    result = pgconn.exec_(f"COPY ({statement}) TO STDOUT (FORMAT csv{quoting})".encode())
    if result.status != ExecStatus.COPY_OUT:
        raise errors.error_from_result(result)


def copied(connection: BaseDatabaseWrapper) -> Generator[Chunk, None, None]:
    """What the server writes after `begin_copy`, in pieces of at least 128 kB. Raises psycopg's errors.

    libpq hands out one row at a time, with a line feed at its end; in the file a row ends as RFC 4180 wants. Iterating
    psycopg's own `copy()` would take each row through its generators; here a row costs one call.
    """
    pgconn: PGconn = connection.connection.pgconn
    arrived = waiting.poll()
    arrived.register(pgconn.socket, waiting.POLLIN)
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
            arrived.poll()
            pgconn.consume_input()
        else:
            break
    if rows:
        yield _chunk(rows)
    _finish(pgconn)


def _chunk(rows: list[Any]) -> Chunk:
    count = len(rows)
    rows.append(b"")
    content = b"\r\n".join(rows)
    rows.clear()
    return Chunk(content, count)


def _finish(pgconn: PGconn) -> None:
    """Read how it ended. Only then is the file whole."""
    while result := pgconn.get_result():
        if result.status != ExecStatus.COMMAND_OK:
            raise errors.error_from_result(result)
