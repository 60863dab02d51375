"""The pages of schedules: their owner makes, changes, pauses and removes them; others only see them."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core.web.forms import DatePreset, preset_days
from backoffice.reports.models import Schedule
from tests.reports.schedule_requests import now, stored_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("public_address")]
SignIn = Callable[[Client, User], Client]
TYPED = {
    "name": "Every Monday",
    "frequency": "weekly",
    "weekday": "1",
    "day": "1",
    "hour": "6",
    "time_zone": "Africa/Lagos",
    "period": "last_week",
}


def test_the_page_shows_why_a_schedule_stopped(
    client: Client, auditor: User, sign_in: SignIn, settings: Settings
) -> None:
    browser, schedule = sign_in(client, auditor), stored_schedule(auditor)
    browser.post(reverse("reports:pause", args=[schedule.pk]))
    settings.PUBLIC_URL = ""

    page = browser.post(reverse("reports:resume", args=[schedule.pk]), follow=True).content.decode()

    assert "COUNTERSIGN_PUBLIC_URL" in page
    assert now(schedule).is_paused


def test_more_schedules_take_no_more_queries(
    client: Client,
    auditor: User,
    administrator: User,
    sign_in: SignIn,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    browser = sign_in(client, auditor)
    stored_schedule(auditor, auditor, administrator)
    with CaptureQueriesContext(connection) as of_one:
        browser.get(reverse("reports:schedules"))
    for number in range(3):
        stored_schedule(administrator, auditor, administrator, name=f"Morning {number}")

    with django_assert_num_queries(len(of_one)):
        browser.get(reverse("reports:schedules"))


def test_a_double_click_creates_one_schedule(
    client: Client, auditor: User, administrator: User, sign_in: SignIn
) -> None:
    browser = sign_in(client, auditor)
    form = f"{reverse('reports:new_schedule', args=['audit-log'])}?group=export&columns=action"

    def save(*recipients: User, **typed: str) -> int:
        people = [person.pk for person in recipients]
        answer = browser.post(form, {**TYPED, **typed, "recipients": people}, follow=True)
        assert "Schedule saved." in answer.content.decode()
        return Schedule.objects.count()

    assert [save(auditor), save(auditor)] == [1, 1]
    assert Entry.objects.filter(action="schedule.created").count() == 1
    assert save(administrator) == 2
    assert save(auditor, hour="7") == 3
    Schedule.objects.update(is_paused=True)
    assert save(auditor) == 4  # the paused one would send nothing


def test_a_schedule_is_created_with_the_filters_of_the_report(
    client: Client, auditor: User, sign_in: SignIn
) -> None:
    browser = sign_in(client, auditor)
    sent = {"then": "schedule", "group": "operation", "since": "2026-01-01", "columns": ["action"]}
    form = browser.post(reverse("reports:report", args=["audit-log"]), sent)["Location"]

    assert browser.get(form).status_code == 200
    answer = browser.post(form, {**TYPED, "recipients": [auditor.pk]})

    assert answer["Location"] == reverse("reports:schedules")
    schedule = Schedule.objects.get()
    assert (schedule.filters, schedule.columns) == ({"group": ["operation"]}, ["action"])
    assert (schedule.frequency, schedule.day, schedule.next_at.isoweekday()) == ("weekly", 1, 1)
    assert "<dd>Every Monday at 06:00, Africa/Lagos</dd>" in browser.get(answer["Location"]).content.decode()


@pytest.mark.parametrize(
    ("preset", "period", "frequency"),
    [
        (DatePreset.TODAY, "yesterday", "daily"),
        (DatePreset.LAST_7_DAYS, "last_7_days", "weekly"),
        (DatePreset.LAST_MONTH, "last_month", "monthly"),
    ],
)
def test_a_schedule_takes_over_the_period_of_the_filter(
    client: Client, auditor: User, sign_in: SignIn, preset: DatePreset, period: str, frequency: str
) -> None:
    with timezone.override(ZoneInfo(auditor.time_zone)):
        days = preset_days(preset)
    address = reverse("reports:new_schedule", args=["audit-log"])
    form = (
        sign_in(client, auditor).get(address, {"since": str(days[0]), "until": str(days[1])}).context["form"]
    )
    assert (form["period"].value(), form["frequency"].value()) == (period, frequency)


def test_a_fixed_period_is_reported_as_not_taken_over(client: Client, auditor: User, sign_in: SignIn) -> None:
    browser, address = sign_in(client, auditor), reverse("reports:new_schedule", args=["audit-log"])
    fixed = browser.get(address, {"since": "2026-01-03", "until": "2026-01-09"}).content.decode()
    assert "3 Jan 2026 \N{EN DASH} 9 Jan 2026, is fixed and is not carried over." in fixed
    assert "not carried over" not in browser.get(address).content.decode()


def test_invalid_input_is_reported_at_its_field(client: Client, auditor: User, sign_in: SignIn) -> None:
    address = reverse("reports:new_schedule", args=["audit-log"])

    answer = sign_in(client, auditor).post(address, {**TYPED, "time_zone": "Atlantis", "recipients": []})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Select a time zone from the list." in page
    assert "Select at least one person." in page
    assert not Schedule.objects.exists()


def test_the_owner_changes_pauses_and_deletes_a_schedule(
    client: Client, auditor: User, sign_in: SignIn
) -> None:
    browser, schedule = sign_in(client, auditor), stored_schedule(auditor)

    browser.post(
        reverse("reports:schedule", args=[schedule.pk]), {**TYPED, "hour": "7", "recipients": [auditor.pk]}
    )
    assert (now(schedule).hour, now(schedule).name) == (7, "Every Monday")
    browser.post(reverse("reports:pause", args=[schedule.pk]))
    assert now(schedule).is_paused
    browser.post(reverse("reports:resume", args=[schedule.pk]))
    assert not now(schedule).is_paused
    browser.post(reverse("reports:remove", args=[schedule.pk]))

    assert not Schedule.objects.exists()
    entries = Entry.objects.filter(action__startswith="schedule.").order_by("position")
    actions = ["created", "changed", "paused", "resumed", "deleted"]
    assert [entry.action.partition(".")[2] for entry in entries] == actions


def test_a_report_with_fixed_days_explains_them(client: Client, auditor: User, sign_in: SignIn) -> None:
    browser = sign_in(client, auditor)
    schedule = stored_schedule(auditor, report="reconciliation", filters={}, columns=[])

    assert "Yesterday (days in UTC)</dd>" in page(browser, "reports:schedules")
    assert "The days of this report are in UTC." in page(browser, "reports:schedule", schedule.pk)
    form = page(browser, "reports:report", "reconciliation")
    assert "From (UTC)" in form
    assert "To (UTC)" in form
    assert "(UTC)" not in page(browser, "reports:report", "audit-log")


def page(browser: Client, name: str, *arguments: object) -> str:
    return browser.get(reverse(name, args=arguments)).content.decode()


@pytest.mark.parametrize("deed", ["schedule", "pause", "resume", "remove"])
def test_other_users_cannot_change_a_schedule(
    client: Client, auditor: User, administrator: User, sign_in: SignIn, deed: str
) -> None:
    schedule = stored_schedule(auditor, auditor, administrator)

    answer = sign_in(client, administrator).post(reverse(f"reports:{deed}", args=[schedule.pk]), TYPED)

    assert answer.status_code == 404
    assert now(schedule).name == "Every morning"
    assert not now(schedule).is_paused


def test_a_recipient_sees_a_schedule_without_buttons(
    client: Client, auditor: User, administrator: User, sign_in: SignIn
) -> None:
    schedule = stored_schedule(auditor, auditor, administrator)

    page = sign_in(client, administrator).get(reverse("reports:schedules")).content.decode()

    assert "Every morning" in page
    assert reverse("reports:remove", args=[schedule.pk]) not in page


def test_a_recipient_sees_the_filters(
    client: Client, auditor: User, administrator: User, sign_in: SignIn
) -> None:
    stored_schedule(auditor, administrator, filters={"group": ["export"], "actor": [str(auditor.pk)]})

    seen = page(sign_in(client, administrator), "reports:schedules")

    assert "<dt>Action</dt><dd>Background exports</dd>" in seen
    assert f"<dt>Person</dt><dd>{auditor}</dd>" in seen
    assert "<dt>Columns</dt><dd>Position, Action</dd>" in seen


def test_the_default_period_of_a_schedule_is_yesterday(
    client: Client, auditor: User, sign_in: SignIn
) -> None:
    browser = sign_in(client, auditor)
    schedule = stored_schedule(auditor, period="all")

    assert '<option value="yesterday" selected>' in page(browser, "reports:new_schedule", "audit-log")
    assert '<option value="all" selected>' in page(browser, "reports:schedule", schedule.pk)
    assert '<option value="yesterday"' not in page(browser, "reports:new_schedule", "incidents")


def test_deleting_a_schedule_needs_confirmation(client: Client, auditor: User, sign_in: SignIn) -> None:
    schedule = stored_schedule(auditor)

    seen = page(sign_in(client, auditor), "reports:schedules")

    folded = seen.partition("<summary>Delete schedule…</summary>")[2].partition("</details>")[0]
    assert f'action="{reverse("reports:remove", args=[schedule.pk])}"' in folded
    assert seen.count(reverse("reports:remove", args=[schedule.pk])) == 1
