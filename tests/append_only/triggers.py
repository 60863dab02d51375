"""Disables the database's own triggers for the duration of a block, on both engines. For tests only."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

_ON_SQLITE = "SELECT tbl_name, 'DROP TRIGGER ' || name, sql FROM sqlite_master WHERE type = 'trigger'"
_ON_POSTGRESQL = """
    SELECT relname, format('ALTER TABLE %s DISABLE TRIGGER %I', tgrelid::regclass, tgname),
           format('ALTER TABLE %s ENABLE %s TRIGGER %I', tgrelid::regclass,
                  CASE tgenabled WHEN 'A' THEN 'ALWAYS' ELSE '' END, tgname)
    FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal AND tgenabled IN ('A', 'O')
"""


@contextmanager
def lifted(connection: BaseDatabaseWrapper, tables: Collection[str] | None = None) -> Iterator[None]:
    """No trigger of these tables, or of any, fires inside the block; afterwards each is as it was."""
    with connection.cursor() as cursor:
        cursor.execute(_ON_SQLITE if connection.vendor == "sqlite" else _ON_POSTGRESQL)
        triggers = [found[1:] for found in cursor.fetchall() if tables is None or found[0] in tables]
        _check_deferred(connection)
        _run(cursor, [lift for lift, _ in triggers])
        try:
            yield
        finally:
            _check_deferred(connection)
            _run(cursor, [restore for _, restore in triggers])


def _run(cursor: CursorWrapper, statements: list[str]) -> None:
    """Run these statements: on PostgreSQL in one message, which takes a third of the time."""
    if cursor.db.vendor == "postgresql" and statements:
        statements = ["; ".join(statements)]
    for statement in statements:
        cursor.execute(statement)


def _check_deferred(connection: BaseDatabaseWrapper) -> None:
    """PostgreSQL alters no table for which the transaction still has deferred checks to make."""
    if connection.vendor == "postgresql":
        connection.check_constraints()
