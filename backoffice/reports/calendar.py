"""When a schedule is due and which days its report covers, in the schedule's time zone."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db.models import TextChoices
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.reports.report import ReportPeriod

_SHORTEST_MONTH, _LONGEST_MONTH = 28, 31


class Frequency(TextChoices):
    """How often a schedule runs."""

    DAILY = "daily", _("Every day")
    WEEKLY = "weekly", _("Every week")
    MONTHLY = "monthly", _("Every month")


class RelativePeriod(TextChoices):
    """A period relative to the due day."""

    ALL = "all", _("All records")
    YESTERDAY = "yesterday", _("Yesterday")
    LAST_WEEK = "last_week", _("Last week (Monday to Sunday)")
    LAST_7_DAYS = "last_7_days", _("Last 7 days until yesterday")
    LAST_MONTH = "last_month", _("Last month")
    MONTH_TO_DATE = "month_to_date", _("This month until yesterday")


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
        case RelativePeriod.LAST_7_DAYS:
            return ReportPeriod(today - timedelta(days=7), yesterday)
        case RelativePeriod.LAST_MONTH:
            last = today.replace(day=1) - timedelta(days=1)
            return ReportPeriod(last.replace(day=1), last)
        case RelativePeriod.MONTH_TO_DATE:
            return ReportPeriod(yesterday.replace(day=1), yesterday)
    return ReportPeriod()


def relative_period(days: ReportPeriod, today: date) -> RelativePeriod | None:
    """The relative period that these days are today; None if there is none.

    Lists offer periods until today, runs cover days that are over: today becomes yesterday, and so on.
    """
    if days.since is None and days.until is None:
        return RelativePeriod.ALL
    # Of equal days, such as today and this month on its first day, the last entry wins: the shorter period.
    until_today = {
        ReportPeriod(today.replace(day=1), today): RelativePeriod.MONTH_TO_DATE,
        ReportPeriod(today - timedelta(days=6), today): RelativePeriod.LAST_7_DAYS,
        ReportPeriod(today, today): RelativePeriod.YESTERDAY,
    }
    exact = (period for period in RelativePeriod if period_days(period, today) == days)
    return next(exact, None) or until_today.get(days)


WHOLE_PERIODS = frozenset({RelativePeriod.LAST_WEEK, RelativePeriod.LAST_MONTH})
"""Those of the calendar, which people choose by the day on which the schedule runs."""


FREQUENCY_OF_PERIOD = {
    RelativePeriod.LAST_WEEK: Frequency.WEEKLY,
    RelativePeriod.LAST_7_DAYS: Frequency.WEEKLY,
    RelativePeriod.LAST_MONTH: Frequency.MONTHLY,
}
"""How often a period is new; every day, if it is not listed."""


def frequency_text(frequency: str, day: int) -> str:
    """`Every Monday`, or `Every month on day 31, or on the last day`: frequency with weekday or day of the month."""
    match frequency:
        case Frequency.WEEKLY:
            return gettext("Every {weekday}").format(weekday=WEEKDAYS[day - 1])
        case Frequency.MONTHLY:
            if day > _SHORTEST_MONTH:
                return gettext("Every month on day {day}, or on the last day").format(day=day)
            return gettext("Every month on day {day}").format(day=day)
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
