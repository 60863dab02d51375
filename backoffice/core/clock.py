"""The database's clock: the one that all processes share, wherever two of them must agree on a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar, cast

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

Row = TypeVar("Row", bound=Model)


def now() -> datetime:
    """The database's present time, aware. Leases, deadlines and schedules are written and compared by it alone.

    Within a transaction it goes on. SQLite is part of this process, so there it is this machine's.
    """
    return _source()


def deadline_checker(moment: datetime) -> Callable[[], bool]:
    """Whether that moment of the database's clock is still to come: to be asked later, when the database may be away.

    From now on it is told by a clock of this machine that nobody sets, and that goes on while the process is stopped or
    the machine asleep. The time it takes to ask the database now counts as passed.
    """
    began = _steady_seconds()
    left = (moment - now()).total_seconds()
    return lambda: _steady_seconds() - began < left


def with_read_time(rows: QuerySet[Row]) -> QuerySet[Row]:
    """The same rows, each of which tells `time_of` it was read, without a question for the time alone."""
    is_asked = connection.vendor == "postgresql" and _source is _database_now
    return cast("QuerySet[Row]", rows.annotate(read_at=Now())) if is_asked else rows


def read_time_of(row: Model) -> datetime:
    """The database's time when a row of `asked_with` was read."""
    told: datetime | None = vars(row).get("read_at")
    return told or now()


@contextmanager
def use_clock(source: Callable[[], datetime]) -> Iterator[None]:
    """For a simulation: everything inside goes by this clock."""
    global _source
    kept, _source = _source, source
    try:
        yield
    finally:
        _source = kept


def _database_now() -> datetime:
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        told: datetime = cursor.fetchone()[0]
    return told


def _steady_seconds() -> float:
    if _source is not _database_now:
        return _source().timestamp()
    return time.clock_gettime(_STEADY_CLOCK)


_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # seconds, also asleep
_source: Callable[[], datetime] = _database_now
