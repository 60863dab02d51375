"""The clocks of the simulation: the service's own, which can be put forward, and real time.

How far the service's clock is ahead stands in the row of the simulation and is kept in the process, which is the only
one that serves; so telling the time costs no query.
"""

import threading
from datetime import UTC, datetime, timedelta, timezone

from django.db.transaction import atomic

from payments_gateway.sandbox.wire.errors import RefusedError

LAGOS = timezone(timedelta(hours=1), "Africa/Lagos")
"""Nigeria keeps UTC+1 the whole year."""

FARTHEST = timedelta(days=3650)
"""How far ahead of real time the service's clock can be put."""

changing = threading.Lock()
"""Held, before the database is locked, by whoever changes how far ahead the clock is: row and process must agree."""

_ahead = timedelta()


def now() -> datetime:
    """The service's present moment in UTC, in the whole milliseconds that it shows."""
    return wall() + _ahead


def wall() -> datetime:
    """Real time in UTC. Tokens live in it, as authenticator apps do."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def ahead() -> timedelta:
    """How far the service's clock is ahead of real time."""
    return _ahead


def advance(seconds: float) -> datetime:
    """Put the service's clock forward, durably, and return its present moment.

    Raises RefusedError 400 for a step backwards, and beyond ten years.
    """
    # Imported here: the clock is also used where no models are set up.
    from payments_gateway.sandbox.models import Simulation

    with changing:
        with atomic(durable=True):
            simulation = Simulation.objects.get()
            simulation.clock_ahead = _later(simulation.clock_ahead, seconds)
            simulation.save(update_fields=["clock_ahead"])
        keep(simulation.clock_ahead)
    return now()


def keep(offset: timedelta) -> None:
    """Go by this offset in the present process: what a start has found in the books, or a reset has put there."""
    global _ahead
    _ahead = offset


def last_midnight() -> datetime:
    """The beginning of the present day in Lagos, as UTC."""
    return now().astimezone(LAGOS).replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)


def stamp(moment: datetime) -> str:
    """ISO 8601 with milliseconds and Z, as in `createdAt`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _later(offset: timedelta, seconds: float) -> timedelta:
    if not 0 <= seconds <= FARTHEST.total_seconds():
        raise _impossible()
    step = timedelta(milliseconds=round(seconds * 1000))
    if offset + step > FARTHEST:
        raise _impossible()
    return offset + step


def _impossible() -> RefusedError:
    phrase = f"must put the clock forward, to at most {FARTHEST.days} days ahead of real time"
    return RefusedError(400, f"seconds {phrase}", [("seconds", phrase)])
