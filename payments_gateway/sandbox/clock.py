"""The clocks of the sandbox: the provider's, which can be put forward, and real time.

The offset of the provider's clock is stored in the simulation row and cached in the only process that serves,
so reading the time costs no query.
"""

import threading
from datetime import UTC, datetime, timedelta, timezone

from django.db.transaction import atomic

from payments_gateway.sandbox.errors import RefusedError

LAGOS = timezone(timedelta(hours=1), "Africa/Lagos")
"""Nigeria keeps UTC+1 the whole year."""

MAX_OFFSET = timedelta(days=3650)
"""How far ahead of real time the service's clock can be put."""

offset_lock = threading.Lock()
"""Held, before the database is locked, by whoever changes how far ahead the clock is: row and process must agree."""

_offset = timedelta()


def now() -> datetime:
    """The service's present moment in UTC, in the whole milliseconds that it shows."""
    return real_now() + _offset


def real_now() -> datetime:
    """Real time in UTC. Tokens live in it, as authenticator apps do."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def offset() -> timedelta:
    """How far the service's clock is ahead of real time."""
    return _offset


def advance(seconds: float) -> datetime:
    """Put the service's clock forward, durably, and return its present moment.

    Raises RefusedError 400 for a step backwards, and beyond ten years.
    """
    # Imported here: the clock is also used where no models are set up.
    from payments_gateway.sandbox.models import Simulation

    with offset_lock:
        with atomic(durable=True):
            simulation = Simulation.objects.get()
            simulation.clock_ahead = _advanced_offset(simulation.clock_ahead, seconds)
            simulation.save(update_fields=["clock_ahead"])
        set_offset(simulation.clock_ahead)
    return now()


def set_offset(offset: timedelta) -> None:
    """Go by this offset in the present process: what a start has found in the books, or a reset has put there."""
    global _offset
    _offset = offset


def last_midnight() -> datetime:
    """The beginning of the present day in Lagos, as UTC."""
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
