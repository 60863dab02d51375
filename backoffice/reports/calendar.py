"""When a schedule is due and which days its report covers, in the schedule's time zone."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db.models import TextChoices

from backoffice.reports.report import ReportPeriod

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORTEST_MONTH, _LONGEST_MONTH = 28, 31


class Frequency(TextChoices):
    """How often a schedule runs."""

    DAILY = "daily", "Every day"
    WEEKLY = "weekly", "Every week"
    MONTHLY = "monthly", "Every month"


class RelativePeriod(TextChoices):
    """A period relative to the due day."""

    ALL = "all", "Everything"
    YESTERDAY = "yesterday", "Yesterday"
    LAST_WEEK = "last_week", "Last week, Monday to Sunday"
    LAST_MONTH = "last_month", "Last month"
    MONTH_TO_DATE = "month_to_date", "This month until yesterday"


def period_days(period: RelativePeriod, today: date) -> ReportPeriod:
    """The first and last day.

    On the first of a month, "this month until yesterday" is the whole previous month.
    """
    yesterday = today - timedelta(days=1)
    match period:
        case RelativePeriod.YESTERDAY:
            return ReportPeriod(yesterday, yesterday)
        case RelativePeriod.LAST_WEEK:
            monday = today - timedelta(days=today.weekday() + 7)
            return ReportPeriod(monday, monday + timedelta(days=6))
        case RelativePeriod.LAST_MONTH:
            last = today.replace(day=1) - timedelta(days=1)
            return ReportPeriod(last.replace(day=1), last)
        case RelativePeriod.MONTH_TO_DATE:
            return ReportPeriod(yesterday.replace(day=1), yesterday)
    return ReportPeriod()


def frequency_text(frequency: str, day: int) -> str:
    """`Every Monday`, or `Every month on day 31 or its last`: frequency with weekday or day of the month."""
    match frequency:
        case Frequency.WEEKLY:
            return f"Every {WEEKDAYS[day - 1]}"
        case Frequency.MONTHLY:
            return f"Every month on day {day}{' or its last' if day > _SHORTEST_MONTH else ''}"
    return str(Frequency(frequency).label)


def next_due(frequency: Frequency, *, day: int, hour: int, zone: ZoneInfo, after: datetime) -> datetime:
    """The first due time after `after`, in UTC.

    A local time skipped by daylight saving is due when the clocks go forward; one that occurs twice is due
    the first time. In a month without the day, the last day is due.
    """
    today = after.astimezone(zone).date()
    for ahead in range(2 * _LONGEST_MONTH + 1):
        candidate = today + timedelta(days=ahead)
        moment = _due_moment(candidate, hour, zone)
        if _is_due_day(frequency, day, candidate) and moment > after:
            return moment
    raise ValueError(f"No day {day} to be found after {after}")


def latest_due(
    frequency: Frequency, *, day: int, hour: int, zone: ZoneInfo, first: datetime, now: datetime
) -> datetime:
    """The latest due time up to `now`, beginning with `first`, which is itself a due time."""
    due = first
    while (following := next_due(frequency, day=day, hour=hour, zone=zone, after=due)) <= now:
        due = following
    return due


def _is_due_day(frequency: Frequency, day: int, candidate: date) -> bool:
    match frequency:
        case Frequency.WEEKLY:
            return candidate.isoweekday() == day
        case Frequency.MONTHLY:
            return candidate.day == min(day, _last_of_month(candidate))
    return True


def _last_of_month(day: date) -> int:
    following = day.replace(day=28) + timedelta(days=4)
    return (following - timedelta(days=following.day)).day


def _due_moment(day: date, hour: int, zone: ZoneInfo) -> datetime:
    """The hour of that day in UTC.

    A skipped local time gets the offset before the change, so it is later, not lost.
    """
    return datetime.combine(day, time(hour), zone).astimezone(UTC)
