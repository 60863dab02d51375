"""Read a stored report from the database: one SELECT of text cells.

It runs on a read-only connection of its own, which sees one snapshot and can be cancelled.
"""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from psycopg import Error as PostgresError
from psycopg.pq import TransactionStatus

from backoffice.reports.rendering.cells import (
    SQLITE_JSON,
    SQLITE_TEXT,
    SQLITE_TIME,
    json_text,
    quotes_every_cell,
    sql_cell,
    time_text,
    without_formula,
)
from backoffice.reports.report import ExportRequest, StoredReport

Row = TypeVar("Row")

_SNAPSHOT_BATCH = 500
_HOUR, _WHOLE_SECONDS = len("2026-03-01 09"), len("2026-03-01 09:30:00")
_LENGTH_BEFORE_OFFSET = len("2026-03-01T10:30:00.000250")
_HOURS_CACHED = 10_000
_LAST_OF_AN_HOUR = timedelta(minutes=59, seconds=59)
_UTC = ZoneInfo("UTC")
_CLIENT_CHECK_INTERVAL = "5s"  # how often a busy server checks that this process is still connected


@contextmanager
def snapshot_connection(zone: ZoneInfo, *, at_most: timedelta) -> Iterator[BaseDatabaseWrapper]:
    """A connection on which all queries see one snapshot, with times written in this zone.

    It is separate, so that a read of several minutes neither holds nor ends another transaction. PostgreSQL
    cancels a query that takes longer than `at_most`. However the block is left, no query keeps running.
    """
    connection = connections[DEFAULT_DB_ALIAS].copy()
    connection.inc_thread_sharing()  # it may be closed by another thread than the one that opened it
    try:
        connection.ensure_connection()
        if connection.vendor == "sqlite":
            _prepare_sqlite(connection, zone)
        else:
            _prepare_postgresql(connection, zone, at_most)
        yield connection
    finally:
        _cancel_and_close(connection)


def rows_of_one_snapshot(rows: Iterator[Row], *, at_most: timedelta) -> Generator[Row, None, None]:
    """The same rows, in batches; all queries that produce them see one snapshot.

    Between two rows this thread uses its usual connection again, so the consumer may write. A query that
    takes longer than `at_most` is cancelled.
    """
    with snapshot_connection(_UTC, at_most=at_most) as connection:
        while found := _next_batch(rows, connection):
            yield from found


def _next_batch(rows: Iterator[Row], connection: BaseDatabaseWrapper) -> list[Row]:
    """The next batch, read with this thread's default connection replaced by the given one."""
    default_connection = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connection
    try:
        return list(islice(rows, _SNAPSHOT_BATCH))
    finally:
        connections[DEFAULT_DB_ALIAS] = default_connection


def _prepare_postgresql(connection: BaseDatabaseWrapper, zone: ZoneInfo, at_most: timedelta) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(
            "SELECT set_config('TimeZone', %s, true), set_config('statement_timeout', %s, true),"
            " set_config('client_connection_check_interval', %s, true)",
            [zone.key, f"{at_most.total_seconds():.0f}s", _CLIENT_CHECK_INTERVAL],
        )


def _prepare_sqlite(connection: BaseDatabaseWrapper, zone: ZoneInfo) -> None:

    def cell_json(stored: str | None) -> str | None:
        return None if stored is None else without_formula(json_text(json.loads(stored)))

    raw = connection.connection
    raw.create_function(SQLITE_TIME, 1, sqlite_time_writer(zone), deterministic=True)
    raw.create_function(SQLITE_TEXT, 1, without_formula, deterministic=True)
    raw.create_function(SQLITE_JSON, 1, cell_json, deterministic=True)
    raw.execute("PRAGMA query_only = ON")
    raw.execute("BEGIN DEFERRED")  # the snapshot is that of the first query


def sqlite_time_writer(zone: ZoneInfo) -> Callable[[str | None], str | None]:
    """A function that formats times, as SQLite stores them, in the same way as `cells.time_text`.

    Rows are mostly sorted by time, so hours repeat: each hour is converted once, and minutes and seconds are
    copied.
    """
    hours: dict[str, tuple[str, str] | None] = {}

    def cell_moment(stored: str | None) -> str | None:
        if stored is None:
            return None
        hour = stored[:_HOUR]
        if hour not in hours:
            if len(hours) >= _HOURS_CACHED:
                hours.clear()
            hours[hour] = _whole_hour(hour, zone)
        converted = hours[hour]
        if converted is None:
            return time_text(datetime.fromisoformat(stored).replace(tzinfo=UTC), zone)
        return (
            f"{converted[0]}{stored[_HOUR:]}{'' if len(stored) > _WHOLE_SECONDS else '.000000'}{converted[1]}"
        )

    return cell_moment


def _whole_hour(hour: str, zone: ZoneInfo) -> tuple[str, str] | None:
    """The local hour and offset of this UTC hour; None unless it maps to one whole local hour."""
    begin = datetime.fromisoformat(f"{hour}:00").replace(tzinfo=UTC)
    offsets = {(begin + part).astimezone(zone).utcoffset() for part in (timedelta(0), _LAST_OF_AN_HOUR)}
    if len(offsets) > 1 or any(offset is None or offset % timedelta(hours=1) for offset in offsets):
        return None
    written = time_text(begin, zone)
    return written[:_HOUR], written[_LENGTH_BEFORE_OFFSET:]


def _cancel_and_close(connection: BaseDatabaseWrapper) -> None:
    """Close it, after cancelling a running query: PostgreSQL would otherwise notice only at its next row."""
    raw = connection.connection
    if connection.vendor == "postgresql" and raw is not None:
        with suppress(PostgresError):  # then closing the connection ends the query
            if raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
                raw.cancel_safe(timeout=2.0)
    connection.close()


_FETCH_BATCH = 500


@dataclass(frozen=True)
class TextSelect:
    """A statement whose columns are all text, and its parameters."""

    sql: str
    parameters: tuple[Any, ...]


def text_select(
    export_request: ExportRequest, report: StoredReport[Any], connection: BaseDatabaseWrapper
) -> TextSelect | None:
    """The requested rows, each cell as written to the file; None if no row can match.

    The report's query, compiled by Django, is the subquery; the outer query converts each column to text.
    """
    query = _selected_columns(export_request, report)
    names = query.query.annotation_select
    fields = {name: query.query.annotations[name].output_field for name in names}
    try:
        inner, parameters = query.query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        return None
    quote = connection.ops.quote_name
    cells = [sql_cell(connection.vendor, field, quote(name)) for name, field in fields.items()]
    if quotes_every_cell(len(cells)):
        cells = [f"COALESCE({cells[0]}, '')"]
    statement = f"SELECT {', '.join(cells)} FROM ({inner}) AS cells"  # noqa: S608 - Django's own SQL, its values parameters
    return TextSelect(statement, tuple(parameters))


def fetch_texts(
    select: TextSelect | None, connection: BaseDatabaseWrapper
) -> Iterator[tuple[str | None, ...]]:
    """The rows of the statement, in batches; the database keeps the rest."""
    if select is None:
        return
    cursor = connection.chunked_cursor() if connection.vendor == "postgresql" else connection.cursor()
    with cursor:
        cursor.execute(select.sql, select.parameters)
        while rows := cursor.fetchmany(_FETCH_BATCH):
            yield from rows


def _selected_columns(export_request: ExportRequest, report: StoredReport[Any]) -> QuerySet[Any]:
    """The query with only the chosen columns, under generated names."""
    values = {f"cell_{number}": column.expression for number, column in enumerate(export_request.columns)}
    query = report.query(export_request.user, export_request.form).order_by(*report.order)
    rows: QuerySet[Any] = query.annotate(**values).values_list(*values)
    return rows
