"""The clocks of the sandbox: the provider's, which can be put forward, and real time.

The offset of the provider's clock is stored in the simulation row and cached in the only process that serves,
so reading the time costs no query.
"""

import threading
from datetime import UTC, datetime, timedelta, timezone

LAGOS = timezone(timedelta(hours=1), "Africa/Lagos")
"""Nigeria keeps UTC+1 the whole year."""

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
