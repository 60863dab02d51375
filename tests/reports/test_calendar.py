"""When schedules are due and which days they are about, in time zones that change their clocks."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from backoffice.reports.calendar import (
    Frequency,
    RelativePeriod,
    frequency_text,
    latest_due,
    next_due,
    period_days,
    relative_period,
)
from backoffice.reports.report import ReportPeriod

LONDON, NEW_YORK, LAGOS = ZoneInfo("Europe/London"), ZoneInfo("America/New_York"), ZoneInfo("Africa/Lagos")


def moments(first: datetime, count: int, zone: ZoneInfo, *, hour: int) -> list[str]:
    """The next due moments of a daily schedule, in the wall time of its zone."""
    due, found = first, []
    for _ in range(count):
        due = next_due(Frequency.DAILY, day=1, hour=hour, zone=zone, after=due)
        found.append(due.astimezone(zone).isoformat())
    return found


def test_daily_runs_keep_their_hour_across_the_dst_change() -> None:
    assert moments(datetime(2026, 3, 27, 12, tzinfo=UTC), 3, LONDON, hour=6) == [
        "2026-03-28T06:00:00+00:00",
        "2026-03-29T06:00:00+01:00",
        "2026-03-30T06:00:00+01:00",
    ]


def test_a_skipped_hour_is_due_once_at_the_dst_change() -> None:
    assert moments(datetime(2026, 3, 28, 12, tzinfo=UTC), 2, LONDON, hour=1) == [
        "2026-03-29T02:00:00+01:00",
        "2026-03-30T01:00:00+01:00",
    ]


def test_a_repeated_hour_is_due_once() -> None:
    assert moments(datetime(2026, 10, 31, 12, tzinfo=UTC), 2, NEW_YORK, hour=1) == [
        "2026-11-01T01:00:00-04:00",
        "2026-11-02T01:00:00-05:00",
    ]


@pytest.mark.parametrize(
    ("after", "due"),
    [("2026-03-01", "2026-03-31"), ("2026-03-31", "2026-04-30"), ("2026-01-31", "2026-02-28")],
)
def test_a_month_without_the_day_is_due_on_its_last_day(after: str, due: str) -> None:
    start = datetime.combine(date.fromisoformat(after), datetime.min.time(), LAGOS).replace(hour=6)

    found = next_due(Frequency.MONTHLY, day=31, hour=6, zone=LAGOS, after=start)

    assert found.astimezone(LAGOS).isoformat() == f"{due}T06:00:00+01:00"


def test_weekly_runs_are_on_their_weekday() -> None:
    found = next_due(Frequency.WEEKLY, day=1, hour=6, zone=LAGOS, after=datetime(2026, 3, 2, 5, tzinfo=UTC))

    assert found == datetime(2026, 3, 9, 5, tzinfo=UTC)  # the moment itself is not after itself
    assert found.weekday() == 0


def test_after_a_pause_the_latest_due_time_counts() -> None:
    first, now = datetime(2026, 3, 1, 5, tzinfo=UTC), datetime(2026, 3, 10, 4, tzinfo=UTC)

    found = latest_due(Frequency.DAILY, day=1, hour=6, zone=LAGOS, first=first, now=now)

    assert found == datetime(2026, 3, 9, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "today", "days"),
    [
        (RelativePeriod.YESTERDAY, "2026-03-01", ("2026-02-28", "2026-02-28")),
        (RelativePeriod.LAST_WEEK, "2026-03-02", ("2026-02-23", "2026-03-01")),
        (RelativePeriod.LAST_WEEK, "2026-03-08", ("2026-02-23", "2026-03-01")),
        (RelativePeriod.LAST_MONTH, "2026-03-31", ("2026-02-01", "2026-02-28")),
        (RelativePeriod.LAST_MONTH, "2026-01-01", ("2025-12-01", "2025-12-31")),
        (RelativePeriod.MONTH_TO_DATE, "2026-03-15", ("2026-03-01", "2026-03-14")),
        (RelativePeriod.MONTH_TO_DATE, "2026-03-01", ("2026-02-01", "2026-02-28")),
    ],
)
def test_periods_are_relative_to_the_due_day(
    period: RelativePeriod, today: str, days: tuple[str, str]
) -> None:
    assert period_days(period, date.fromisoformat(today)) == ReportPeriod(*map(date.fromisoformat, days))


def test_the_period_all_has_no_days() -> None:
    assert period_days(RelativePeriod.ALL, date(2026, 3, 1)) == ReportPeriod()


@pytest.mark.parametrize(
    ("frequency", "day", "words"),
    [
        (Frequency.DAILY, 1, "Every day"),
        (Frequency.WEEKLY, 1, "Every Monday"),
        (Frequency.WEEKLY, 7, "Every Sunday"),
        (Frequency.MONTHLY, 28, "Every month on day 28"),
        (Frequency.MONTHLY, 29, "Every month on day 29, or on the last day"),
    ],
)
def test_the_frequency_label_has_its_day(frequency: Frequency, day: int, words: str) -> None:
    assert frequency_text(frequency, day) == words


TODAY = date(2026, 11, 23)  # a Monday


@pytest.mark.parametrize(
    ("since", "until", "period"),
    [
        (None, None, RelativePeriod.ALL),
        (date(2026, 11, 22), date(2026, 11, 22), RelativePeriod.YESTERDAY),
        (TODAY, TODAY, RelativePeriod.YESTERDAY),
        (date(2026, 11, 17), TODAY, RelativePeriod.LAST_7_DAYS),
        (date(2026, 10, 1), date(2026, 10, 31), RelativePeriod.LAST_MONTH),
        (date(2026, 11, 1), TODAY, RelativePeriod.MONTH_TO_DATE),
        (date(2026, 11, 1), date(2026, 11, 22), RelativePeriod.MONTH_TO_DATE),
        (date(2026, 11, 3), date(2026, 11, 9), None),
        (date(2026, 11, 1), None, None),
    ],
)
def test_the_days_of_a_filter_become_a_relative_period(
    since: date | None, until: date | None, period: RelativePeriod | None
) -> None:
    assert relative_period(ReportPeriod(since, until), TODAY) == period


def test_the_last_seven_days_end_yesterday() -> None:
    assert period_days(RelativePeriod.LAST_7_DAYS, TODAY) == ReportPeriod(
        date(2026, 11, 16), date(2026, 11, 22)
    )


@pytest.mark.parametrize(
    ("day", "since", "period"),
    [
        (1, 1, RelativePeriod.YESTERDAY),
        (7, 1, RelativePeriod.LAST_7_DAYS),
        (8, 1, RelativePeriod.MONTH_TO_DATE),
    ],
)
def test_of_two_periods_with_the_same_days_it_becomes_the_shorter(
    day: int, since: int, period: RelativePeriod
) -> None:
    """On the first of a month, "today" became a report of the month so far."""
    today = date(2026, 12, day)
    assert relative_period(ReportPeriod(date(2026, 12, since), today), today) == period
