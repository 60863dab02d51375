"""A connection of an export's own: it reads one moment, writes nothing, and can be broken off."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Error as PostgresError
from psycopg.pq import TransactionStatus

from backoffice.reports.cells import json_text, moment, without_formula
from backoffice.reports.sql_cells import SQLITE_JSON, SQLITE_MOMENT

_GONE_WITHIN = "5s"  # a server at work looks so often whether this process is still there


@contextmanager
def snapshot(zone: ZoneInfo, *, at_most: timedelta) -> Iterator[BaseDatabaseWrapper]:
    """A connection whose every question is answered from the same moment, with times written in this zone.

    Its own, so that what is read in one piece over minutes neither holds nor ends a transaction of anybody else. A
    question that takes longer than `at_most` is broken off by PostgreSQL. However the block is left, nothing goes on.
    """
    connection = connections[DEFAULT_DB_ALIAS].copy()
    try:
        connection.ensure_connection()
        if connection.vendor == "sqlite":
            _prepare_sqlite(connection, zone)
        else:
            _prepare_postgresql(connection, zone, at_most)
        yield connection
    finally:
        _let_go(connection)


def _prepare_postgresql(connection: BaseDatabaseWrapper, zone: ZoneInfo, at_most: timedelta) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(
            "SELECT set_config('TimeZone', %s, true), set_config('statement_timeout', %s, true),"
            " set_config('client_connection_check_interval', %s, true)",
            [zone.key, f"{at_most.total_seconds():.0f}s", _GONE_WITHIN],
        )


def _prepare_sqlite(connection: BaseDatabaseWrapper, zone: ZoneInfo) -> None:
    """A SELECT of SQLite sees one moment from its first row to its last."""

    def cell_moment(kept: str | None) -> str | None:
        if kept is None:
            return None
        return moment(datetime.fromisoformat(kept).replace(tzinfo=UTC), zone)

    def cell_json(kept: str | None) -> str | None:
        return None if kept is None else without_formula(json_text(json.loads(kept)))

    raw = connection.connection
    raw.create_function(SQLITE_MOMENT, 1, cell_moment, deterministic=True)
    raw.create_function(SQLITE_JSON, 1, cell_json, deterministic=True)
    raw.execute("PRAGMA query_only = ON")


def _let_go(connection: BaseDatabaseWrapper) -> None:
    """Close it, and tell PostgreSQL first where it is at work: it would only notice at its next row."""
    raw = connection.connection
    if connection.vendor == "postgresql" and raw is not None:
        with suppress(PostgresError):  # then the closed connection has to tell it
            if raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
                raw.cancel_safe(timeout=2.0)
    connection.close()
