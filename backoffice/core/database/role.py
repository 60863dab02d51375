"""The runtime role of the database: check its privileges, refresh its grants, and connect as the owner of the tables.

The owner grants what the work needs and revokes everything else. The runtime role may read and insert; the models
declare what it may update and delete (`writes`). It may never truncate a table, alter it, set a sequence or touch a
trigger, and calls only the declared SECURITY DEFINER functions.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext_lazy as _
from psycopg.sql import SQL, Composable, Identifier

from backoffice.core.database.writes import SELECT_ONLY, functions_of_owner, rights_by_table

_ROLE = """
    SELECT rolname, rolsuper, rolcreaterole OR rolreplication OR rolbypassrls,
           has_schema_privilege(current_schema(), 'CREATE'),
           EXISTS (SELECT 1 FROM pg_proc
                   WHERE pronamespace = current_schema()::regnamespace AND pg_has_role(proowner, 'MEMBER'))
    FROM pg_roles WHERE rolname = current_user
"""
_TABLES = """
    SELECT relname, pg_has_role(relowner, 'MEMBER'), has_table_privilege(pg_class.oid, 'TRUNCATE, TRIGGER'),
           has_table_privilege(pg_class.oid, 'INSERT'), has_table_privilege(pg_class.oid, 'DELETE'),
           array(SELECT attname::text FROM pg_attribute
                 WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
                 AND has_column_privilege(pg_class.oid, attnum, 'UPDATE'))
    FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') ORDER BY relname
"""
_GRANTED_TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND pg_has_role(relowner, 'MEMBER')
    ORDER BY relname
"""
_GRANTED_FUNCTIONS = """
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


class RoleProblem(StrEnum):
    """A privilege with which whoever holds this process's password could undo what the database enforces."""

    IS_SUPERUSER = "is_superuser"
    MANAGES_ROLES = "manages_roles"
    OWNS_TABLES = "owns_tables"
    OWNS_FUNCTIONS = "owns_functions"
    MAY_CREATE = "may_create"
    MAY_TRUNCATE = "may_truncate"
    MAY_REWRITE = "may_rewrite"

    @property
    def sentence(self) -> str:
        """The problem in one sentence, for a page."""
        return str(_SENTENCES[self])


_SENTENCES = {
    RoleProblem.IS_SUPERUSER: _("It is a superuser of the database server"),
    RoleProblem.MANAGES_ROLES: _("It can create roles, replicate, or bypass row security"),
    RoleProblem.OWNS_TABLES: _("It owns tables, so it can alter them and drop their triggers"),
    RoleProblem.OWNS_FUNCTIONS: _("It owns functions, so it can replace those that triggers call"),
    RoleProblem.MAY_CREATE: _("It can create tables and functions"),
    RoleProblem.MAY_TRUNCATE: _("It can empty tables or add triggers to them"),
    RoleProblem.MAY_REWRITE: _("It can change or delete rows that must never change once added"),
}


@dataclass(frozen=True)
class DatabaseRole:
    """The role that runs, and its problems with the tables that each concerns; none where it concerns all."""

    name: str
    problems: dict[RoleProblem, Sequence[str]]


def database_role() -> DatabaseRole | None:
    """The role of this process's connection, for the System page and the deployment check; None on SQLite.

    Two queries. Raises DatabaseError if the database cannot be reached.
    """
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(_ROLE)
        name, is_superuser, manages_roles, may_create, owns_functions = cursor.fetchone()
        if is_superuser:
            return DatabaseRole(name, {RoleProblem.IS_SUPERUSER: ()})
        cursor.execute(_TABLES)
        tables = cursor.fetchall()
    whole = {
        RoleProblem.MANAGES_ROLES: manages_roles,
        RoleProblem.OWNS_FUNCTIONS: owns_functions,
        RoleProblem.MAY_CREATE: may_create,
    }
    of_tables = {
        RoleProblem.OWNS_TABLES: [table for table, owns, *_rest in tables if owns],
        RoleProblem.MAY_TRUNCATE: [
            table for table, owns, truncate, *_rest in tables if truncate and not owns
        ],
        RoleProblem.MAY_REWRITE: [row[0] for row in tables if not row[1] and _may_rewrite(row)],
    }
    found: dict[RoleProblem, Sequence[str]] = {problem: () for problem, is_so in whole.items() if is_so}
    return DatabaseRole(name, found | {problem: names for problem, names in of_tables.items() if names})


def _may_rewrite(row: tuple[Any, ...]) -> bool:
    """Whether more than the model of the table declares is possible. Tables of others do not count."""
    table, _owns, _truncate, may_insert, may_delete, updatable = row
    rights = rights_by_table().get(table)
    return rights is not None and (
        (may_insert and not rights.insert)
        or (may_delete and not rights.delete)
        or (rights.columns is not None and not set(updatable) <= rights.columns)
    )


@register(deploy=True)
def check_database_role(**_of_django: Any) -> Iterable[CheckMessage]:
    """The role that runs cannot undo what the database enforces. Nothing is found while it cannot be reached."""
    if settings.ENVIRONMENT == "sandbox":
        return []
    try:
        role = database_role()
    except DatabaseError:
        return []
    if role is None:
        return []
    return [
        Warning(
            f"The database role {role.name} runs Countersign, and has more rights than that needs: "
            f"{problem.sentence}{_some(tables)}.",
            hint="Let another role own the tables and migrate (COUNTERSIGN_MIGRATION_DATABASE_URL), and run "
            "manage.py migrate: docs/operator/deploy.md, Two database roles.",
            id="core.W001",
        )
        for problem, tables in role.problems.items()
    ]


def _some(tables: Sequence[str]) -> str:
    if not tables:
        return ""
    more = f" and {len(tables) - 3} more" if len(tables) > 3 else ""
    return f" ({', '.join(tables[:3])}{more})"


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
        cursor.execute(_GRANTED_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
        cursor.execute(_GRANTED_FUNCTIONS)
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
        rights = declared.get(table, SELECT_ONLY)
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
