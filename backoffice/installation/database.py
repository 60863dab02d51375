"""Create the database on PostgreSQL, with a role that owns and migrates it and a role that runs."""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier, Literal

from backoffice.settings_values import ENCODING

Report = Callable[[str], None]
NAME = "countersign"
FORM = f"Write it as postgres://USER:PASSWORD@HOST:PORT/NAME. {ENCODING}"
SCHEMES = ("postgres", "postgresql")
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_DATABASE_EXISTS = "SELECT 1 FROM pg_database WHERE datname = %s"


class DatabaseSetupError(Exception):
    """The database is not ready; the message says what to do."""


@dataclass(frozen=True)
class DatabaseUrls:
    """The addresses of one database for the runtime role and for the role that owns it."""

    runs: str
    owns: str


def fault_of_address(url: str) -> str:
    """What is wrong with the address of a PostgreSQL database, without a part of it; empty if it can be used."""
    try:
        parts = urlsplit(url)
        is_port_usable = parts.port != 0
        options = conninfo_to_dict(url) if parts.scheme in SCHEMES else {}
    except (ValueError, psycopg.Error):  # their messages repeat what they cannot read, such as a password
        return "it cannot be read"
    faults = {
        "it does not begin with postgres://": parts.scheme not in SCHEMES,
        "it has no user": not parts.username,
        "it has no host": not options.get("host"),
        "its port cannot be used": not is_port_usable,
        "it does not end with the name of a database": not _NAME.fullmatch(parts.path.removeprefix("/")),
        "a password has # or @ that is not encoded": bool(parts.fragment) or parts.netloc.count("@") > 1,
    }
    return next((fault for fault, is_found in faults.items() if is_found), "")


def new_urls(administrator: str) -> DatabaseUrls:
    """Addresses on the administrator's server with new passwords: the roles are named after the database."""
    server = urlsplit(administrator)
    name = server.path.strip("/")
    database = name if name != "postgres" else NAME
    host = server.netloc.rpartition("@")[2] or "127.0.0.1:5432"

    def url(role: str) -> str:
        return urlunsplit(
            ("postgres", f"{role}:{secrets.token_urlsafe(32)}@{host}", f"/{database}", server.query, "")
        )

    return DatabaseUrls(url(database), url(f"{database}_owner"))


def prepare_database(administrator: str, urls: DatabaseUrls, report: Report) -> None:
    """Create roles, database and extension as far as they are missing. Raises DatabaseSetupError.

    Tables that the runtime role owned until now belong to the other one afterwards.
    """
    runs, owns = urlsplit(urls.runs), urlsplit(urls.owns)
    database = owns.path.strip("/")
    if runs.username == owns.username:
        raise DatabaseSetupError(
            "One role for both: COUNTERSIGN_MIGRATION_DATABASE_URL must name another role"
        )
    with _connected(_with_database(administrator, "postgres")) as server:
        for url in (urls.owns, urls.runs):
            _create_role(server, url, report)
        if not _exists(server, _DATABASE_EXISTS, database):
            server.execute(
                SQL("CREATE DATABASE {} OWNER {}").format(Identifier(database), Identifier(_user(urls.owns)))
            )
            report(f"Created the database {database}")
    with _connected(_with_database(administrator, database)) as inside:
        _arrange(inside, database, runs=_user(urls.runs), owns=_user(urls.owns), report=report)


def holds_installation(url: str, administrator: str) -> bool:
    """Whether the database of `url` exists and was migrated; on the administrator's server, if one is named.

    Raises DatabaseSetupError if it cannot be reached. Without an administrator it cannot be missing.
    """
    if administrator:
        database = urlsplit(url).path.strip("/")
        with _connected(_with_database(administrator, "postgres")) as server:
            if not _exists(server, _DATABASE_EXISTS, database):
                return False
        url = _with_database(administrator, database)
    with _connected(url) as inside:
        return _exists(inside, "SELECT 1 WHERE to_regclass(%s) IS NOT NULL", "django_migrations")


def check_database(url: str) -> None:
    """Raises DatabaseSetupError unless the role can connect."""
    _connected(url).close()


def _connected(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as exc:
        where = urlsplit(url)
        raise DatabaseSetupError(
            f"{unquote(where.username or '')} cannot connect to {where.hostname}{where.path}: {exc}".strip()
        ) from exc


def _create_role(server: "psycopg.Connection[tuple[object, ...]]", url: str, report: Report) -> None:
    role, password = _user(url), unquote(urlsplit(url).password or "")
    if _exists(server, "SELECT 1 FROM pg_roles WHERE rolname = %s", role):
        return
    server.execute(
        SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
            Identifier(role), Literal(password)
        )
    )
    report(f"Created the database role {role}")


def _arrange(
    inside: "psycopg.Connection[tuple[object, ...]]", database: str, *, runs: str, owns: str, report: Report
) -> None:
    """Set the owners, and revoke all rights of others. Idempotent."""
    if _exists(inside, "SELECT 1 FROM pg_class WHERE relkind = 'r' AND pg_get_userbyid(relowner) = %s", runs):
        inside.execute(SQL("REASSIGN OWNED BY {} TO {}").format(Identifier(runs), Identifier(owns)))
        report(f"The tables of {runs} belong to {owns} now")
    statements: tuple[LiteralString, ...] = (
        "ALTER DATABASE {database} OWNER TO {owns}",
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
        "GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {runs}",
        "ALTER SCHEMA public OWNER TO {owns}",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    )
    names = {"database": Identifier(database), "owns": Identifier(owns), "runs": Identifier(runs)}
    for statement in statements:
        inside.execute(SQL(statement).format(**names))


def _exists(connection: "psycopg.Connection[tuple[object, ...]]", query: LiteralString, name: str) -> bool:
    return connection.execute(query, [name]).fetchone() is not None


def _user(url: str) -> str:
    return unquote(urlsplit(url).username or "")


def _with_database(url: str, database: str) -> str:
    return urlsplit(url)._replace(path=f"/{quote(database)}").geturl()
