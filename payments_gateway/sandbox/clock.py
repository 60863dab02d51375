"""The clocks of the sandbox: the provider's, which can be advanced, and real time.

The offset of the provider's clock is stored in the row of `SandboxState` and cached in the only serving process, so
reading the time needs no query.
"""

import threading
from datetime import UTC, datetime, timedelta, timezone

LAGOS = timezone(timedelta(hours=1), "Africa/Lagos")
"""Nigeria has no daylight saving time."""

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
