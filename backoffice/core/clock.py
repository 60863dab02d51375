"""The database's clock: the one that all processes share, wherever two of them must agree on a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection
from django.utils import timezone


def now() -> datetime:
    """The database's present time, aware. Leases, deadlines and schedules are written and compared by it alone.

    Within a transaction it goes on. SQLite is part of this process, so there it is this machine's.
    """
    return _source()


def until(moment: datetime) -> Callable[[], bool]:
    """Whether that moment of the database's clock is still to come: to be asked later, when the database may be away.

    From now on it is told by a clock of this machine that nobody sets, and that goes on while the process is stopped or
    the machine asleep. The time it takes to ask the database now counts as passed.
    """
    began = _steady()
    left = (moment - now()).total_seconds()
    return lambda: _steady() - began < left


@contextmanager
def running_by(source: Callable[[], datetime]) -> Iterator[None]:
    """For a simulation: everything inside goes by this clock."""
    global _source
    kept, _source = _source, source
    try:
        yield
    finally:
        _source = kept


def _of_the_database() -> datetime:
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        told: datetime = cursor.fetchone()[0]
    return told


def _steady() -> float:
    if _source is not _of_the_database:
        return _source().timestamp()
    return time.clock_gettime(_GOES_ON)


_GOES_ON = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # seconds, also asleep
_source: Callable[[], datetime] = _of_the_database
