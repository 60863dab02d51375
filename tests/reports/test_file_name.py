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


def filled(report: str, **values: object) -> Any:
    form = REPORTS[report].form(values)
    assert form.is_valid()
    return form


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        (MARCH_1, MARCH_31, "2026-03-01-to-2026-03-31"),
        (None, MARCH_31, "beginning-to-2026-03-31"),
        (MARCH_1, None, f"2026-03-01-to-{timezone.localdate()}"),
    ],
)
def test_the_days_stand_in_the_name(since: date | None, until: date | None, days: str) -> None:
    form = filled("operations", since=since, until=until)

    assert file_name(REPORTS["operations"], form) == f"countersign-operations-{days}.csv"


def test_without_days_the_time_stands_in_the_name() -> None:
    name = file_name(REPORTS["operations"], filled("operations"))

    assert name.startswith(f"countersign-operations-as-of-{timezone.now():%Y-%m-%dT%H}")
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
    assert period(filled("transactions", duration=duration), MARCH_31) == Period(since, MARCH_31)


def test_the_whole_history_has_no_days() -> None:
    assert period(filled("transactions"), MARCH_31) == Period()
