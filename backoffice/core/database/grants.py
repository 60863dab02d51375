"""Grant the role that runs what its work needs, and revoke everything else. Run by the owner of the tables.

It may read and insert; the models declare what it may update and delete (`writes`). It may never truncate a
table, alter it, set a sequence or touch a trigger, and calls only the declared functions of those that work with the
rights of the owner.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from psycopg.sql import SQL, Composable, Identifier

from backoffice.core.database.writes import READ_ALONE, functions_of_owner, rights_by_table

_TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND pg_has_role(relowner, 'MEMBER')
    ORDER BY relname
"""
_FUNCTIONS = """
    SELECT oid::regprocedure::text, proname FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND prosecdef AND pg_has_role(proowner, 'MEMBER')
    ORDER BY 1
"""
_PRIVILEGES = """
    SELECT relname, relacl::text, (
        SELECT array_agg(attname || attacl::text ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attacl IS NOT NULL
    ) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'S')
    UNION ALL
    SELECT oid::regprocedure::text, proacl::text, NULL FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND prosecdef
    ORDER BY 1
"""


class NoOwnerError(Exception):
    """No role that owns the tables is configured, or it is the one that runs."""


def runtime_role() -> str:
    """The role of `COUNTERSIGN_DATABASE_URL`."""
    return str(settings.DATABASES["default"].get("USER") or "")


def has_owner() -> bool:
    """Whether a role of its own migrates this PostgreSQL database."""
    owner = settings.MIGRATION_DATABASE.get("USER")
    return connection.vendor == "postgresql" and bool(owner) and owner != runtime_role()


@contextmanager
def connected_as_owner() -> Iterator[None]:
    """Connect as the role that owns the tables until the end of the block. Raises NoOwnerError."""
    if not has_owner():
        raise NoOwnerError
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, **_address(settings.MIGRATION_DATABASE)}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = before


def refresh_grants(role: str) -> bool:
    """Bring the role's privileges on tables, sequences and functions to what the models declare; whether any changed.

    Takes no lock that a running process waits for, and is safe to repeat.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('countersign grants'))")
        cursor.execute(_PRIVILEGES)
        before = cursor.fetchall()
        cursor.execute(_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
        cursor.execute(_FUNCTIONS)
        functions = cursor.fetchall()
        for statement in (*_statements(role, tables), *_statements_on_functions(role, functions)):
            cursor.execute(statement)
        cursor.execute(_PRIVILEGES)
        return bool(cursor.fetchall() != before)


def _statements(role: str, tables: list[str]) -> Iterator[Composable]:
    """Everything is revoked first, so that what an earlier release granted does not remain."""
    names = {"role": Identifier(role)}
    for statement in (
        "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}",
        "REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {role}",
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
        # A table that a migration just made: until the grants are refreshed at its end.
        "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT ON TABLES TO {role}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE, SELECT ON SEQUENCES TO {role}",
    ):
        yield SQL(statement).format(schema=Identifier(_schema()), **names)
    declared = rights_by_table()
    for table in tables:
        rights = declared.get(table, READ_ALONE)
        columns = rights.columns
        granted = [SQL("SELECT")]
        granted += [SQL("INSERT")] if rights.insert else []
        granted += [SQL("DELETE")] if rights.delete else []
        granted += [SQL("UPDATE")] if columns is None else []
        yield SQL("GRANT {} ON {} TO {role}").format(SQL(", ").join(granted), Identifier(table), **names)
        if columns:
            some = SQL(", ").join(map(Identifier, sorted(columns)))
            yield SQL("GRANT UPDATE ({}) ON {} TO {role}").format(some, Identifier(table), **names)


def _statements_on_functions(role: str, functions: list[tuple[str, str]]) -> Iterator[Composable]:
    """A new function may be called by everybody, so that right is revoked too."""
    declared = functions_of_owner()
    for signature, name in functions:
        function = SQL(signature)  # quoted by the database
        yield SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC, {}").format(function, Identifier(role))
        if name in declared:
            yield SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(function, Identifier(role))


def _schema() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        return str(cursor.fetchone()[0])


def _address(database: dict[str, Any]) -> dict[str, Any]:
    """Who connects where; options such as those of TLS are those of the URL."""
    fields = {name: database[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    options = settings.DATABASES["default"].get("OPTIONS", {})
    return {**fields, "OPTIONS": {**options, **database.get("OPTIONS", {})}}
