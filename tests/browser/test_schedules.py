"""The form of a schedule asks only for the day that its frequency needs."""

import pytest
from playwright.sync_api import expect

from tests.browser.people import AUDITOR, People
from tests.browser.steps import press

pytestmark = [pytest.mark.browser, pytest.mark.stack]


@pytest.mark.parametrize("scripts", [True, False])
def test_the_day_field_is_shown_only_for_weekly_and_monthly_schedules(people: People, scripts: bool) -> None:
    page = people.page_of(AUDITOR, scripts=scripts)
    page.goto("/reports/operations/schedule/")
    weekday, day = page.get_by_label("Weekday"), page.get_by_label("Day of the month")
    for frequency, is_of_week, is_of_month in (
        ("weekly", True, False),
        ("monthly", False, True),
        ("daily", False, False),
    ):
        page.get_by_label("How often").select_option(frequency)
        expect(weekday).to_be_visible(visible=is_of_week)
        expect(day).to_be_visible(visible=is_of_month)
    press(page, "Keep the schedule")
    expect(page.get_by_role("heading", level=1)).to_have_text("Schedules")
