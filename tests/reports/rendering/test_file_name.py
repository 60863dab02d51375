"""A file says by its name what it is and of when."""

from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.rendering.export_file import file_name
from backoffice.reports.report import ExportRequest, FileFormat

MARCH_1, MARCH_31 = date(2026, 3, 1), date(2026, 3, 31)


def filled(**values: object) -> ExportRequest:
    report = REPORTS["operations"]
    form = report.form(values)
    assert form.is_valid()
    return ExportRequest(report, User(), form, ZoneInfo("UTC"), report.columns)


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        (MARCH_1, MARCH_31, "2026-03-01-to-2026-03-31"),
        (None, MARCH_31, "beginning-to-2026-03-31"),
    ],
)
def test_the_file_name_has_the_days(since: date | None, until: date | None, days: str) -> None:
    assert file_name(filled(since=since, until=until)) == f"countersign-operations-{days}.csv"


def test_an_open_period_ends_today_in_the_file_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 31, 20, tzinfo=UTC))
    by_person = replace(filled(since=MARCH_1), zone=ZoneInfo("Asia/Tokyo"))
    by_report = replace(by_person, report=REPORTS["reconciliation"])

    assert file_name(by_person).endswith("-to-2026-04-01.csv")
    assert file_name(by_report).endswith("-to-2026-03-31.csv")


def test_the_file_name_has_the_time_without_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 31, 20, tzinfo=UTC))

    name = file_name(filled())

    assert name.startswith("countersign-operations-as-of-2026-03-31T20")
    assert name.endswith("Z.csv")


def test_the_suffix_is_the_file_format() -> None:
    assert file_name(replace(filled(), format=FileFormat.XLSX)).endswith("Z.xlsx")
