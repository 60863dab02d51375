"""Whether this process could do its work now: the parts that it needs, and the state of each.

Nothing here names an address, a key or an error text: a part is a code, and the log has the reason.
"""

import logging
from collections.abc import Callable
from enum import StrEnum
from functools import cache

from celery.exceptions import OperationalError as CeleryError
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from kombu.exceptions import KombuError

from backoffice.celery import app
from backoffice.core import credentials, encryption
from payments_gateway import NotSentError

logger = logging.getLogger(__name__)


class Part(StrEnum):
    """What a process needs. The values are part of the interface of `/readyz`."""

    DATABASE = "database"
    MIGRATIONS = "migrations"  # all those of this release are applied
    BROKER = "broker"
    KEYS = "keys"  # the encryption keys are usable, and the API key in use can be decrypted


class State(StrEnum):
    """The state of a part."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"  # without the database it cannot be known


def part_states() -> dict[Part, State]:
    """The state of each part now, within seconds: connecting has a time limit. On an open connection it waits for an
    answer without one.
    """
    has_database = _succeeds(Part.DATABASE, _check_database)
    states = {Part.DATABASE: has_database}
    for part, check in ((Part.MIGRATIONS, _check_migrations), (Part.KEYS, _check_keys)):
        states[part] = _succeeds(part, check) if has_database is State.OK else State.UNKNOWN
    states[Part.BROKER] = _succeeds(Part.BROKER, check_broker)
    return states


class MissingMigrationsError(Exception):
    """The database lacks migrations of this release."""


class ReadOnlyDatabaseError(Exception):
    """The database answers and accepts no writes, such as a primary that became a standby."""


class BrokerAwayError(Exception):
    """The broker cannot be reached, or refuses."""


def _succeeds(part: Part, check: Callable[[], None]) -> State:
    try:
        check()
    except (
        DatabaseError,
        ReadOnlyDatabaseError,
        MissingMigrationsError,
        ImproperlyConfigured,
        NotSentError,
        BrokerAwayError,
    ) as exc:
        logger.warning("Not ready: %s (%s)", part, type(exc.__cause__ or exc).__name__)
        return State.FAILED
    return State.OK


@cache
def broker_errors() -> tuple[type[BaseException], ...]:
    """What the client library of the configured broker raises."""
    with app.connection_for_write() as broker:
        return tuple({*broker.connection_errors, *broker.channel_errors})


_ACCEPTS_WRITES = {
    "postgresql": "SELECT current_setting('transaction_read_only') = 'off'",
    "sqlite": "SELECT query_only = 0 FROM pragma_query_only",
}


def _check_database() -> None:
    """One query over a connection that works: one that is closed, or leads to a standby, is opened again."""
    try:
        _check_connection()
    except (DatabaseError, ReadOnlyDatabaseError):
        if connection.in_atomic_block:
            raise
        connection.close()
        _check_connection()


def _check_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ACCEPTS_WRITES[connection.vendor])
        if not cursor.fetchone()[0]:
            raise ReadOnlyDatabaseError


def _check_migrations() -> None:
    missing = _migrations_of_release() - set(MigrationRecorder(connection).applied_migrations())
    if missing:
        raise MissingMigrationsError


@cache
def _migrations_of_release() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def _check_keys() -> None:
    encryption.check_encryption_keys()
    credentials.key_in_use()


def check_broker() -> None:
    """Connect to the broker. Raises BrokerAwayError."""
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=1)
            _ = broker.default_channel  # Redis connects only here
    except (KombuError, CeleryError, OSError) as exc:
        raise BrokerAwayError from exc
    except broker_errors() as exc:
        raise BrokerAwayError from exc
