"""Leases, shared run times, due-row claims and named locks: how processes share work through the database.

A lease lets one process at a time do a job; that of a killed process expires. Each acquisition gets a higher
number (fencing token): a process that was stopped past its expiry finds its number outdated and writes nothing.
Compare-and-set on one row, since SQLite has no row locks; by the database's clock, since a machine whose clock
is ahead would lock out the others.
"""

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from django.db import connection
from django.db.models import F, Model

from backoffice.core import clock
from backoffice.core.models import LeaseRow


class LeaseLostError(Exception):
    """The lease expired and another process acquired it, or it was released."""


@dataclass
class Lease:
    """A lease that was acquired. As a context manager it is released at the end of the block."""

    name: str
    number: int
    duration: timedelta
    _extended_at: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.release()

    def __str__(self) -> str:
        return f"{self.name} #{self.number}"

    def verify(self) -> None:
        """Extend the lease, and lock its row until the end of the transaction, so that nobody acquires it
        before the caller's changes are committed. Raises LeaseLostError.
        """
        own_row = LeaseRow.objects.filter(name=self.name, number=self.number)
        if not own_row.update(held_until=clock.now() + self.duration):
            raise LeaseLostError
        self._extended_at = time.monotonic()

    def renew(self) -> None:
        """Extend the lease unless it was extended recently. Raises LeaseLostError."""
        if time.monotonic() - self._extended_at > self.duration.total_seconds() / 8:
            self.verify()

    def release(self, *, free_at: datetime | None = None) -> None:
        """End the lease; others can acquire it now, or from `free_at`. Does nothing if it is lost already."""
        own_row = LeaseRow.objects.filter(name=self.name, number=self.number)
        own_row.update(number=F("number") + 1, held_until=free_at or clock.now())


def acquire_lease(name: str, duration: timedelta) -> Lease | None:
    """Acquire the lease if it is free or expired; otherwise return None.

    One that is never released limits how often a job runs: not again before `duration` has passed.
    """
    row = clock.with_read_time(LeaseRow.objects.filter(name=name)).first()
    now = clock.read_time_of(row) if row else clock.now()
    if row is None:
        row, _ = LeaseRow.objects.get_or_create(name=name, defaults={"acquired_at": now, "held_until": now})
    if row.held_until > now:
        return None
    expired = LeaseRow.objects.filter(name=name, number=row.number, held_until__lte=now)
    if not expired.update(number=row.number + 1, acquired_at=now, held_until=now + duration):
        return None
    return Lease(name, row.number + 1, duration)


def is_held(name: str) -> bool:
    """Whether a process holds the lease of this name now."""
    row = clock.with_read_time(LeaseRow.objects.filter(name=name)).first()
    return row is not None and row.held_until > clock.read_time_of(row)


def held_leases(prefix: str) -> dict[str, datetime]:
    """The leases held now whose names begin with `prefix`: `str(Lease)`, and when it was acquired."""
    rows = LeaseRow.objects.filter(name__startswith=prefix, held_until__gt=clock.now())
    return {f"{row.name} #{row.number}": row.acquired_at for row in rows}


def next_run_time(name: str, *, interval: timedelta) -> datetime:
    """The time of the next run: now, but not before `interval` after the previous one.

    Every call before that time returns the same time.
    """
    now = clock.now()
    row, _ = LeaseRow.objects.get_or_create(
        name=name, defaults={"acquired_at": now, "held_until": now - interval}
    )
    if row.held_until > now:
        return row.held_until
    at = max(now, row.held_until + interval)
    LeaseRow.objects.filter(name=name, held_until=row.held_until).update(held_until=at)
    return at


def claim_due_row(row: Model, due: str, *, until: datetime) -> bool:
    """Postpone the time at which a row is due, the field `due`, and return whether this call did it.

    Of two processes that saw the same row due, one gets it. If it dies, the row is due again at `until`.
    """
    unclaimed = type(row)._default_manager.filter(pk=row.pk, **{due: getattr(row, due)})
    return unclaimed.update(**{due: until}) == 1


def lock_until_commit(name: str, *, shared: bool = False) -> None:
    """Hold an advisory lock with this name until the end of the transaction. Others wait, and then see what
    was committed. Those who hold it shared do not wait for each other.

    On SQLite nothing is needed: a transaction holds the only write lock from its beginning (BEGIN IMMEDIATE).
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
            cursor.execute(f"SELECT {function}(hashtextextended(%s, 0))", [name])
