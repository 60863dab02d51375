"""Read a stored report from the database: one SELECT of text cells, on a read-only connection of its own that sees one
snapshot and can be cancelled.
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
    cells_for,
    json_text,
    quotes_every_cell,
    time_text,
    without_formula,
)
from backoffice.reports.report import ExportRequest, StoredReport

Row = TypeVar("Row")

_SNAPSHOT_BATCH = 500
_HOUR, _WHOLE_SECONDS = len("2026-03-01 09"), len("2026-03-01 09:30:00")
_BEFORE_THE_OFFSET = len("2026-03-01T10:30:00.000250")
_HOURS_REMEMBERED = 10_000
_LAST_OF_AN_HOUR = timedelta(minutes=59, seconds=59)
_UTC = ZoneInfo("UTC")
_GONE_WITHIN = "5s"  # a server at work looks so often whether this process is still there


@contextmanager
def snapshot_connection(zone: ZoneInfo, *, at_most: timedelta) -> Iterator[BaseDatabaseWrapper]:
    """A connection whose every question is answered from the same moment, with times written in this zone.

    Its own, so that what is read in one piece over minutes neither holds nor ends a transaction of anybody else. A
    question that takes longer than `at_most` is broken off by PostgreSQL. However the block is left, nothing goes on.
    """
    connection = connections[DEFAULT_DB_ALIAS].copy()
    connection.inc_thread_sharing()  # the thread that ends it may be another one than that which began
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
    """The same rows, some at a time, however many questions they cost: all are answered from the same moment.

    Between two rows this thread has its usual connection again: who takes them may write. A question that takes longer
    than `at_most` is broken off.
    """
    with snapshot_connection(_UTC, at_most=at_most) as connection:
        while found := _next_batch(rows, connection):
            yield from found


def _next_batch(rows: Iterator[Row], connection: BaseDatabaseWrapper) -> list[Row]:
    """Some more of them, with every question of this thread meanwhile asked by that connection."""
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connection
    try:
        return list(islice(rows, _SNAPSHOT_BATCH))
    finally:
        connections[DEFAULT_DB_ALIAS] = usual


def _prepare_postgresql(connection: BaseDatabaseWrapper, zone: ZoneInfo, at_most: timedelta) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(
            "SELECT set_config('TimeZone', %s, true), set_config('statement_timeout', %s, true),"
            " set_config('client_connection_check_interval', %s, true)",
            [zone.key, f"{at_most.total_seconds():.0f}s", _GONE_WITHIN],
        )


def _prepare_sqlite(connection: BaseDatabaseWrapper, zone: ZoneInfo) -> None:

    def cell_json(kept: str | None) -> str | None:
        return None if kept is None else without_formula(json_text(json.loads(kept)))

    raw = connection.connection
    raw.create_function(SQLITE_TIME, 1, sqlite_time_writer(zone), deterministic=True)
    raw.create_function(SQLITE_TEXT, 1, without_formula, deterministic=True)
    raw.create_function(SQLITE_JSON, 1, cell_json, deterministic=True)
    raw.execute("PRAGMA query_only = ON")
    raw.execute("BEGIN DEFERRED")  # its moment is that of the first question


def sqlite_time_writer(zone: ZoneInfo) -> Callable[[str | None], str | None]:
    """Writes moments, as SQLite keeps them, as `cells` does.

    Rows mostly come in the order of time, so hours repeat: each is worked out once, and what stands behind is copied.
    """
    hours: dict[str, tuple[str, str] | None] = {}

    def cell_moment(kept: str | None) -> str | None:
        if kept is None:
            return None
        hour = kept[:_HOUR]
        if hour not in hours:
            if len(hours) >= _HOURS_REMEMBERED:
                hours.clear()
            hours[hour] = _whole_hour(hour, zone)
        told = hours[hour]
        if told is None:
            return time_text(datetime.fromisoformat(kept).replace(tzinfo=UTC), zone)
        return f"{told[0]}{kept[_HOUR:]}{'' if len(kept) > _WHOLE_SECONDS else '.000000'}{told[1]}"

    return cell_moment


def _whole_hour(hour: str, zone: ZoneInfo) -> tuple[str, str] | None:
    """What this hour of UTC is called there, and its offset; None unless it is a whole hour there as well."""
    begin = datetime.fromisoformat(f"{hour}:00").replace(tzinfo=UTC)
    offsets = {(begin + part).astimezone(zone).utcoffset() for part in (timedelta(0), _LAST_OF_AN_HOUR)}
    if len(offsets) > 1 or any(offset is None or offset % timedelta(hours=1) for offset in offsets):
        return None
    written = time_text(begin, zone)
    return written[:_HOUR], written[_BEFORE_THE_OFFSET:]


def _cancel_and_close(connection: BaseDatabaseWrapper) -> None:
    """Close it, and tell PostgreSQL first where it is at work: it would only notice at its next row."""
    raw = connection.connection
    if connection.vendor == "postgresql" and raw is not None:
        with suppress(PostgresError):  # then the closed connection has to tell it
            if raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
                raw.cancel_safe(timeout=2.0)
    connection.close()


_FETCHED_AT_ONCE = 500


@dataclass(frozen=True)
class TextSelect:
    """A statement whose every column is text, and its parameters."""

    sql: str
    parameters: tuple[Any, ...]


def text_select(
    wanted: ExportRequest, report: StoredReport[Any], connection: BaseDatabaseWrapper
) -> TextSelect | None:
    """The rows that are wanted, each cell as it stands in the file; None where no row can match.

    The query of the report stands inside, told by Django; around it each of its columns becomes text.
    """
    query = _selected_columns(wanted, report)
    names = list(query.query.annotation_select)
    fields = [query.query.annotations[name].output_field for name in names]
    try:
        inner, parameters = query.query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        return None
    quoted = [connection.ops.quote_name(name) for name in names]
    cells = [cell(name) for cell, name in zip(cells_for(connection.vendor, fields), quoted, strict=True)]
    if quotes_every_cell(len(cells)):
        cells = [f"COALESCE({cells[0]}, '')"]
    told = f"SELECT {', '.join(cells)} FROM ({inner}) AS told"  # noqa: S608 - Django's own SQL, its values parameters
    return TextSelect(told, tuple(parameters))


def fetch_texts(
    select: TextSelect | None, connection: BaseDatabaseWrapper
) -> Iterator[tuple[str | None, ...]]:
    """The rows of the statement, some at a time: PostgreSQL keeps the rest, SQLite has not looked for it yet."""
    if select is None:
        return
    cursor = connection.chunked_cursor() if connection.vendor == "postgresql" else connection.cursor()
    with cursor:
        cursor.execute(select.sql, select.parameters)
        while rows := cursor.fetchmany(_FETCHED_AT_ONCE):
            yield from rows


def _selected_columns(wanted: ExportRequest, report: StoredReport[Any]) -> QuerySet[Any]:
    """The query with the chosen columns and nothing else, under names of our own."""
    values = {f"cell_{number}": column.expression for number, column in enumerate(wanted.columns)}
    query = report.query(wanted.user, wanted.form).order_by(*report.order)
    told: QuerySet[Any] = query.annotate(**values).values_list(*values)
    return told
