"""Named leases in the database: one process at a time does a job, and not again before a given time.

Compare-and-set on the row, since SQLite has no row locks, and the database's clock, since a machine whose own
clock is ahead would lock out the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import connection

from backoffice.core import clock
from backoffice.core.models import NamedLease


def lock_until_commit(name: str) -> None:
    """Hold an advisory lock with this name until the end of the transaction. Others wait, and then see what
    was committed.

    On SQLite nothing is needed: a transaction holds the only write lock from its beginning (BEGIN IMMEDIATE).
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def try_acquire(what: str, *, pause: timedelta) -> bool:
    """Whether this process may do the job now, so that two sweepers do not both do it. The next time is after
    `pause`.
    """
    now = clock.now()
    return _acquire_until(what, now, until=now + pause)


@contextmanager
def hold_lease(what: str, *, at_most: timedelta) -> Iterator[bool]:
    """Hold the lease while the block runs; yields whether it was acquired. The lease of a killed process
    expires.
    """
    now = clock.now()
    is_ours = _acquire_until(what, now, until=now + at_most)
    try:
        yield is_ours
    finally:
        if is_ours:
            NamedLease.objects.filter(what=what, next_at=now + at_most).update(next_at=clock.now())


def next_free_time(what: str, *, pause: timedelta) -> datetime:
    """The time of the next run for all who ask from now on: at once, but not before `pause` after the
    previous one.

    Everyone who asks before that time gets the same time.
    """
    now = clock.now()
    turn, _ = NamedLease.objects.get_or_create(what=what, defaults={"next_at": now - pause})
    if turn.next_at > now:
        return turn.next_at
    at = max(now, turn.next_at + pause)
    NamedLease.objects.filter(what=what, next_at=turn.next_at).update(next_at=at)
    return at


def _acquire_until(what: str, now: datetime, *, until: datetime) -> bool:
    turn, _ = NamedLease.objects.get_or_create(what=what, defaults={"next_at": now})
    if turn.next_at > now:
        return False
    return NamedLease.objects.filter(what=what, next_at=turn.next_at).update(next_at=until) == 1
