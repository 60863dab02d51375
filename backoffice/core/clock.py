"""The database's clock, which all processes share: used wherever two processes must agree on a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar, cast

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

Row = TypeVar("Row", bound=Model)
RECENT_SECONDS = 1.0


def now() -> datetime:
    """The database's current time, aware. Leases, deadlines and schedules are written and compared with it
    only.

    It advances within a transaction (`clock_timestamp`). SQLite runs in this process, so there it is the
    clock of this machine.
    """
    return _source()


def recent() -> datetime:
    """The same time, from a reading at most `RECENT_SECONDS` ago and this machine's monotonic clock since.

    Only for selecting what is due, which processes do every second. What is stored, and what is decided about the
    selected rows, uses `now`.
    """
    global _last_reading
    if connection.vendor == "sqlite" or _source is not _database_now:
        return now()
    steady = _steady_seconds()
    if _last_reading is None or not 0 <= steady - _last_reading[1] < RECENT_SECONDS:
        _last_reading = now(), steady
    read_at, read_steady = _last_reading
    return read_at + timedelta(seconds=steady - read_steady)


def deadline_checker(moment: datetime) -> Callable[[], bool]:
    """A function that returns whether this moment of the database's clock is still in the future. It needs no
    database.

    It measures from now on with a monotonic clock of this machine, which also runs while the process is
    stopped or the machine is asleep. The time of the query itself counts as elapsed.
    """
    started = _steady_seconds()
    remaining = (moment - now()).total_seconds()
    return lambda: _steady_seconds() - started < remaining


def with_read_time(rows: QuerySet[Row]) -> QuerySet[Row]:
    """The same rows, annotated so that `read_time_of` needs no query of its own."""
    return cast("QuerySet[Row]", rows.annotate(read_at=Now())) if reads_database() else rows


def reads_database() -> bool:
    """Whether each reading of the clock is a query: on PostgreSQL, unless a simulation replaces the clock."""
    return connection.vendor == "postgresql" and _source is _database_now


def read_time_of(row: Model) -> datetime:
    """The database's time at which a row of `with_read_time` was read; the current time for any other row."""
    read_at: datetime | None = vars(row).get("read_at")
    return read_at or now()


@contextmanager
def use_clock(source: Callable[[], datetime]) -> Iterator[None]:
    """For simulations: replaces the clock within the block."""
    global _source
    previous, _source = _source, source
    try:
        yield
    finally:
        _source = previous


def _database_now() -> datetime:
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        database_time: datetime = cursor.fetchone()[0]
    return database_time


def _steady_seconds() -> float:
    if _source is not _database_now:
        return _source().timestamp()
    return time.clock_gettime(_STEADY_CLOCK)


# Also runs while the machine sleeps, where the system has such a clock.
_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_source: Callable[[], datetime] = _database_now
_last_reading: tuple[datetime, float] | None = None
