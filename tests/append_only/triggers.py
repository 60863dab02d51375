"""Takes the database's own triggers away for a moment, on both engines. For tests only."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db.backends.base.base import BaseDatabaseWrapper

_ON_SQLITE = "SELECT 'DROP TRIGGER ' || name, sql FROM sqlite_master WHERE type = 'trigger'"
_ON_POSTGRESQL = """
    SELECT format('ALTER TABLE %s DISABLE TRIGGER %I', tgrelid::regclass, tgname),
           format('ALTER TABLE %s ENABLE %s TRIGGER %I', tgrelid::regclass,
                  CASE tgenabled WHEN 'A' THEN 'ALWAYS' ELSE '' END, tgname)
    FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('A', 'O')
"""


@contextmanager
def lifted(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """No trigger of ours fires inside; afterwards each is exactly as it was."""
    with connection.cursor() as cursor:
        cursor.execute(_ON_SQLITE if connection.vendor == "sqlite" else _ON_POSTGRESQL)
        triggers = cursor.fetchall()
        _settle(connection)
        for lift, _ in triggers:
            cursor.execute(lift)
        try:
            yield
        finally:
            _settle(connection)
            for _, restore in triggers:
                cursor.execute(restore)


def _settle(connection: BaseDatabaseWrapper) -> None:
    """PostgreSQL alters no table for which the transaction still has deferred checks to make."""
    if connection.vendor == "postgresql":
        connection.check_constraints()
