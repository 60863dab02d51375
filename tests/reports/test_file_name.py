"""A file says by its name what it is and of when."""

from datetime import date
from typing import Any

import pytest
from django.utils import timezone

from backoffice.reports.catalogue import REPORTS
from backoffice.reports.file_name import file_name
from backoffice.reports.report import Period
from backoffice.reports.transactions_report import period

MARCH_1, MARCH_31 = date(2026, 3, 1), date(2026, 3, 31)


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        (MARCH_1, MARCH_31, "2026-03-01-to-2026-03-31"),
        (None, MARCH_31, "beginning-to-2026-03-31"),
        (MARCH_1, None, f"2026-03-01-to-{timezone.localdate()}"),
    ],
)
def test_the_days_stand_in_the_name(since: date | None, until: date | None, days: str) -> None:
    filters = {"since": since, "until": until}

    assert file_name(REPORTS["operations"], filters) == f"countersign-operations-{days}.csv"


def test_without_days_the_time_stands_in_the_name() -> None:
    name = file_name(REPORTS["audit-log"], {"since": None, "until": None})

    assert name.startswith(f"countersign-audit-log-as-of-{timezone.now():%Y-%m-%dT%H}")
    assert name.endswith("Z.csv")


@pytest.mark.parametrize(
    ("duration", "since"),
    [
        ("one day", date(2026, 3, 30)),
        ("one week", date(2026, 3, 24)),
        ("one month", MARCH_1),
        ("one year", date(2025, 3, 31)),
    ],
)
def test_a_duration_of_the_service_is_a_period(duration: str, since: date) -> None:
    assert period({"duration": duration}, MARCH_31) == Period(since, MARCH_31)


def test_the_whole_history_has_no_days() -> None:
    filters: dict[str, Any] = {"duration": ""}

    assert period(filters, MARCH_31) == Period()
