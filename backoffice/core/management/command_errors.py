"""How a command of `manage.py` ends when the database, a file or its output cannot be used: without a traceback."""

import os
import select
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from backoffice.core.logs import redact_secrets

_NOT_REACHED = ("08", "28", "3D", "53300", "57P")  # of a server that refuses or ends the connection
_NOT_FOUND = frozenset({"42P01", "42703"})  # a table, a column
_NO_FILE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB})


@contextmanager
def ended_by_unusable_database() -> Iterator[None]:
    """If the database cannot be reached, or was not migrated, the block ends the process with a line that says so."""
    try:
        yield
    except Error as exc:
        sentence = _problem(exc.__cause__)
        if not sentence:
            raise
        sys.exit(f"CommandError: {redact_secrets(sentence)}")


@contextmanager
def ended_by_closed_output() -> Iterator[None]:
    """If the output is a pipe that its reader has closed, as `| head -n 1` does, the block ends the process with exit
    code 1 and prints nothing more.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        closed = [stream for stream in (sys.stdout, sys.stderr) if _is_closed_pipe(stream.fileno())]
        if not closed:
            raise  # a connection
        for stream in closed:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left is flushed at the end
        sys.exit(1)


def _is_closed_pipe(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def reason_of(exc: Exception) -> str:
    """Why a file cannot be used, without the number of the error and without the name of the file."""
    return (isinstance(exc, OSError) and exc.strerror) or str(exc)


def _problem(cause: BaseException | None) -> str:
    """Empty if the database works and has all that this release needs."""
    if _is_unreachable(cause):
        # Further lines are advice of the driver, and the words before repeat the address.
        reason = " ".join(str(cause).partition("\n")[0].rpartition(" failed: ")[2].split())
        return (
            f"The database {_name(connection.settings_dict)} cannot be reached: {reason}. "
            'See "Database unreachable or read-only" in the runbook (docs/operator/runbook.md).'
        )
    return _missing_migrations() if _is_not_found(cause) else ""


def _is_unreachable(cause: BaseException | None) -> bool:
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _NO_FILE
    # An error while connecting has no code.
    return isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "08").startswith(_NOT_REACHED)


def _is_not_found(cause: BaseException | None) -> bool:
    if isinstance(cause, sqlite3.OperationalError):
        return str(cause).startswith(("no such table", "no such column")) or "has no column" in str(cause)
    return getattr(cause, "sqlstate", "") in _NOT_FOUND


def _missing_migrations() -> str:
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return ""
    lacks = "lacks migrations of this release" if executor.recorder.has_table() else "has no tables"
    return f"The database {_name(connection.settings_dict)} {lacks}: run manage.py migrate first."


def _name(database: Mapping[str, Any]) -> str:
    """The name and the address of the database, without the role and its password."""
    options = database.get("OPTIONS", {})
    host, port = database.get("HOST") or options.get("host", ""), database.get("PORT")
    return f"{database['NAME']} at {host}{f':{port}' if port else ''}" if host else str(database["NAME"])
