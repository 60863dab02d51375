"""A connection of an export's own: it reads one moment, writes nothing, and can be broken off."""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Error as PostgresError
from psycopg.pq import TransactionStatus

from backoffice.reports.cells import json_text, moment, without_formula
from backoffice.reports.sql_cells import SQLITE_JSON, SQLITE_MOMENT, SQLITE_TEXT

Row = TypeVar("Row")

_AT_ONCE = 500
_HOUR, _WHOLE_SECONDS = len("2026-03-01 09"), len("2026-03-01 09:30:00")
_BEFORE_THE_OFFSET = len("2026-03-01T10:30:00.000250")
_HOURS_REMEMBERED = 10_000
_LAST_OF_AN_HOUR = timedelta(minutes=59, seconds=59)
_AS_DJANGO_READS = ZoneInfo("UTC")
_GONE_WITHIN = "5s"  # a server at work looks so often whether this process is still there


@contextmanager
def snapshot(zone: ZoneInfo, *, at_most: timedelta) -> Iterator[BaseDatabaseWrapper]:
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
        _let_go(connection)


def of_one_moment(rows: Iterator[Row], *, at_most: timedelta) -> Generator[Row, None, None]:
    """The same rows, some at a time, however many questions they cost: all are answered from the same moment.

    Between two rows this thread has its usual connection again: who takes them may write. A question that takes longer
    than `at_most` is broken off.
    """
    with snapshot(_AS_DJANGO_READS, at_most=at_most) as connection:
        while found := _taken(rows, connection):
            yield from found


def _taken(rows: Iterator[Row], connection: BaseDatabaseWrapper) -> list[Row]:
    """Some more of them, with every question of this thread meanwhile asked by that connection."""
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connection
    try:
        return list(islice(rows, _AT_ONCE))
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
    raw.create_function(SQLITE_MOMENT, 1, moments_in(zone), deterministic=True)
    raw.create_function(SQLITE_TEXT, 1, without_formula, deterministic=True)
    raw.create_function(SQLITE_JSON, 1, cell_json, deterministic=True)
    raw.execute("PRAGMA query_only = ON")
    raw.execute("BEGIN DEFERRED")  # its moment is that of the first question


def moments_in(zone: ZoneInfo) -> Callable[[str | None], str | None]:
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
            return moment(datetime.fromisoformat(kept).replace(tzinfo=UTC), zone)
        return f"{told[0]}{kept[_HOUR:]}{'' if len(kept) > _WHOLE_SECONDS else '.000000'}{told[1]}"

    return cell_moment


def _whole_hour(hour: str, zone: ZoneInfo) -> tuple[str, str] | None:
    """What this hour of UTC is called there, and its offset; None unless it is a whole hour there as well."""
    begin = datetime.fromisoformat(f"{hour}:00").replace(tzinfo=UTC)
    offsets = {(begin + part).astimezone(zone).utcoffset() for part in (timedelta(0), _LAST_OF_AN_HOUR)}
    if len(offsets) > 1 or any(offset is None or offset % timedelta(hours=1) for offset in offsets):
        return None
    written = moment(begin, zone)
    return written[:_HOUR], written[_BEFORE_THE_OFFSET:]


def _let_go(connection: BaseDatabaseWrapper) -> None:
    """Close it, and tell PostgreSQL first where it is at work: it would only notice at its next row."""
    raw = connection.connection
    if connection.vendor == "postgresql" and raw is not None:
        with suppress(PostgresError):  # then the closed connection has to tell it
            if raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
                raw.cancel_safe(timeout=2.0)
    connection.close()
