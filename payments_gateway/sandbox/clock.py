"""The clocks of the sandbox: the provider's, which can be advanced, and real time.

The offset of the provider's clock is stored in the simulation row and cached in the only serving process, so
reading the time needs no query.
"""

import threading
from datetime import UTC, datetime, timedelta, timezone

from django.db.transaction import atomic

from payments_gateway.sandbox.errors import RefusedError

LAGOS = timezone(timedelta(hours=1), "Africa/Lagos")
"""Nigeria has no daylight saving time."""

MAX_OFFSET = timedelta(days=3650)
"""Maximum offset of the provider's clock from real time."""

offset_lock = threading.Lock()
"""Acquire it before the database lock to change the offset: database row and process must agree."""

_offset = timedelta()


def now() -> datetime:
    """The provider's current time in UTC, in whole milliseconds as in responses."""
    return real_now() + _offset


def real_now() -> datetime:
    """Real time in UTC. One-time codes use it, as authenticator apps do."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def offset() -> timedelta:
    """How far the provider's clock is ahead of real time."""
    return _offset


def advance(seconds: float) -> datetime:
    """Advance the provider's clock, store the offset, and return the new time.

    Raises RefusedError 400 for a negative step, and beyond `MAX_OFFSET`.
    """
    # Imported here: the clock is also used before models are loaded.
    from payments_gateway.sandbox.models import Simulation

    with offset_lock:
        with atomic(durable=True):
            simulation = Simulation.objects.get()
            simulation.clock_ahead = _advanced_offset(simulation.clock_ahead, seconds)
            simulation.save(update_fields=["clock_ahead"])
        set_offset(simulation.clock_ahead)
    return now()


def set_offset(offset: timedelta) -> None:
    """Set the offset of this process, as stored in the database at a start or a reset."""
    global _offset
    _offset = offset


def last_midnight() -> datetime:
    """The beginning of the current day in Lagos, in UTC."""
    return now().astimezone(LAGOS).replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)


def iso_timestamp(moment: datetime) -> str:
    """ISO 8601 with milliseconds and Z, as in `createdAt`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _advanced_offset(offset: timedelta, seconds: float) -> timedelta:
    if not 0 <= seconds <= MAX_OFFSET.total_seconds():
        raise _invalid_step()
    step = timedelta(milliseconds=round(seconds * 1000))
    if offset + step > MAX_OFFSET:
        raise _invalid_step()
    return offset + step


def _invalid_step() -> RefusedError:
    phrase = f"must put the clock forward, to at most {MAX_OFFSET.days} days ahead of real time"
    return RefusedError(400, f"seconds {phrase}", [("seconds", phrase)])
