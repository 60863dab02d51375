"""The database's clock: the one that all processes share, wherever two of them must agree on a time."""

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


_source: Callable[[], datetime] = _of_the_database
