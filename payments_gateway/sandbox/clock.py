"""The one clock of the simulation."""

from datetime import UTC, datetime, timedelta, timezone

LAGOS = timezone(timedelta(hours=1), "Africa/Lagos")
"""Nigeria keeps UTC+1 the whole year."""


def now() -> datetime:
    """The present moment in UTC, in the whole milliseconds that the service shows."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def last_midnight() -> datetime:
    """The beginning of the present day in Lagos, as UTC."""
    return now().astimezone(LAGOS).replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)


def stamp(moment: datetime) -> str:
    """ISO 8601 with milliseconds and Z, as in `createdAt`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
