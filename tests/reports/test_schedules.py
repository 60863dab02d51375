"""Schedules: exactly one export for each person and due moment, and nothing for whoever may not read it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.reports import services
from backoffice.reports.errors import NotAllowedError, ScheduleError
from backoffice.reports.models import ExportJob, Schedule
from backoffice.reports.selectors import obstacles
from backoffice.reports.services import mailing
from backoffice.reports.states import State

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
MEMBERS: dict[str, Any] = {
    "name": "Every morning",
    "report": "audit-log",
    "filters": {"group": ["export"]},
    "columns": ["position", "action"],
    "format": "csv",
    "has_mark": False,
    "time_zone": "Africa/Lagos",
    "period": "yesterday",
    "frequency": "daily",
    "day": 1,
    "hour": 6,
}


@pytest.fixture(autouse=True)
def _public_address(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://office.example"


def kept(owner: User, *recipients: User, **changes: Any) -> Schedule:
    return services.create_schedule(owner, {**MEMBERS, **changes}, recipients or (owner,))


def is_due(schedule: Schedule, at: datetime) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(next_at=at)


def now(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def ended_yesterday() -> datetime:
    """Six in the morning in Lagos, some days ago."""
    return clock.now().replace(hour=5, minute=0, second=0, microsecond=0) - timedelta(days=3)


def test_a_new_schedule_waits_for_its_next_moment(auditor: User) -> None:
    schedule = kept(auditor)

    assert schedule.next_at > clock.now()
    assert (schedule.next_at.hour, schedule.next_at.minute) == (5, 0)  # six in Lagos
    assert services.run_schedules() == 0
    assert Entry.objects.filter(action="schedule.created").get().actor_id == auditor.pk


def test_each_recipient_gets_an_export_of_their_own(auditor: User, administrator: User) -> None:
    schedule = kept(auditor, auditor, administrator)
    is_due(schedule, clock.now())

    assert services.run_schedules() == 1

    assert set(ExportJob.objects.values_list("person", flat=True)) == {auditor.pk, administrator.pk}
    assert now(schedule).next_at > clock.now()
    assert Entry.objects.filter(action="schedule.run").count() == 1


def test_the_days_are_those_before_the_due_moment_in_its_zone(auditor: User) -> None:
    schedule = kept(auditor, time_zone="Pacific/Auckland", hour=0)
    due = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=400)
    Schedule.objects.filter(pk=schedule.pk).update(frequency="monthly", day=due.day, next_at=due)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "_source", lambda: due + timedelta(minutes=1))
        services.run_schedules()

    job = ExportJob.objects.get()
    day = str(due.date())  # noon in UTC is midnight or later of the next day there
    assert job.filters == {"group": ["export"], "since": [day], "until": [day]}
    assert (job.time_zone, job.columns) == ("Pacific/Auckland", ["position", "action"])


def test_two_beats_make_one_run(auditor: User) -> None:
    schedule = kept(auditor)
    is_due(schedule, clock.now())

    def attempt(_number: int) -> int:
        try:
            return services.run_schedules()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(attempt, range(4)))

    assert sum(ran) == 1
    assert ExportJob.objects.count() == 1


def test_the_database_refuses_a_second_export_of_one_moment(auditor: User) -> None:
    schedule = kept(auditor)
    is_due(schedule, clock.now())
    services.run_schedules()
    job = ExportJob.objects.get()

    with pytest.raises(IntegrityError), transaction.atomic():
        ExportJob.objects.create(
            person=auditor,
            schedule=schedule,
            due_at=job.due_at,
            report="audit-log",
            time_zone="UTC",
            created_at=clock.now(),
        )


def test_after_a_time_without_anybody_it_runs_once_for_the_latest_moment(auditor: User) -> None:
    schedule = kept(auditor)
    is_due(schedule, ended_yesterday())

    services.run_schedules()
    services.run_schedules()

    job = ExportJob.objects.get()
    assert job.due_at is not None
    assert timedelta(0) <= clock.now() - job.due_at < timedelta(days=1)


def test_a_paused_schedule_makes_nothing_and_makes_up_for_nothing(auditor: User) -> None:
    schedule = kept(auditor)
    services.pause_schedule(schedule.pk, actor=auditor)
    is_due(schedule, ended_yesterday())

    assert services.run_schedules() == 0
    services.resume_schedule(schedule.pk, actor=auditor)
    assert services.run_schedules() == 0

    assert now(schedule).next_at > clock.now()
    entries = Entry.objects.filter(action__startswith="schedule.").order_by("position")
    assert [entry.action for entry in entries] == ["schedule.created", "schedule.paused", "schedule.resumed"]


def test_without_a_public_address_there_is_no_schedule_whose_messages_lead_nowhere(
    auditor: User, settings: Settings
) -> None:
    schedule = kept(auditor)
    services.pause_schedule(schedule.pk, actor=auditor)
    settings.PUBLIC_URL = ""

    with pytest.raises(ScheduleError, match="COUNTERSIGN_PUBLIC_URL"):
        kept(auditor)
    with pytest.raises(ScheduleError, match="COUNTERSIGN_PUBLIC_URL"):
        services.change_schedule(schedule.pk, MEMBERS, [auditor], actor=auditor)
    with pytest.raises(ScheduleError, match="COUNTERSIGN_PUBLIC_URL"):
        services.resume_schedule(schedule.pk, actor=auditor)

    assert Schedule.objects.get().is_paused


def test_the_page_says_why_a_schedule_cannot_go_on(
    client: Client, auditor: User, sign_in: SignIn, settings: Settings
) -> None:
    browser, schedule = sign_in(client, auditor), kept(auditor)
    browser.post(reverse("reports:pause", args=[schedule.pk]))
    settings.PUBLIC_URL = ""

    page = browser.post(reverse("reports:resume", args=[schedule.pk]), follow=True).content.decode()

    assert "COUNTERSIGN_PUBLIC_URL" in page
    assert now(schedule).is_paused


def test_nobody_receives_what_they_may_not_read(auditor: User, maker: User) -> None:
    with pytest.raises(NotAllowedError):
        kept(auditor, auditor, maker)
    with pytest.raises(NotAllowedError):
        kept(maker, auditor)

    assert not Schedule.objects.exists()


def test_somebody_who_lost_the_right_gets_nothing_and_the_schedule_says_why(
    auditor: User, administrator: User
) -> None:
    schedule = kept(administrator, auditor, administrator)
    auditor.groups.clear()
    is_due(schedule, clock.now())

    services.run_schedules()

    assert list(ExportJob.objects.values_list("person", flat=True)) == [administrator.pk]
    assert now(schedule).last_outcome == "Femi Ade: may no longer read the report"
    assert obstacles(now(schedule)) == ["Femi Ade: may no longer read the report"]
    entry = Entry.objects.filter(action="schedule.run").get()
    assert entry.detail["not_sent"] == ["Femi Ade: may no longer read the report"]


def test_somebody_who_was_deactivated_gets_nothing(auditor: User, administrator: User) -> None:
    schedule = kept(administrator, auditor)
    User.objects.filter(pk=auditor.pk).update(is_active=False)
    is_due(schedule, clock.now())

    services.run_schedules()

    assert not ExportJob.objects.exists()
    assert "deactivated" in now(schedule).last_outcome


def test_a_schedule_of_somebody_who_left_makes_nothing(auditor: User, administrator: User) -> None:
    schedule = kept(administrator, auditor)
    User.objects.filter(pk=administrator.pk).update(is_active=False)
    is_due(schedule, clock.now())

    services.run_schedules()

    assert not ExportJob.objects.exists()
    assert "who made the schedule" in now(schedule).last_outcome


@pytest.mark.parametrize(
    "changes", [{"report": "api-keys", "period": "yesterday", "filters": {}, "columns": []}]
)
def test_a_report_without_days_has_no_period(auditor: User, changes: dict[str, Any]) -> None:
    with pytest.raises(ScheduleError):
        kept(auditor, **changes)


def ran(schedule: Schedule) -> ExportJob:
    is_due(schedule, clock.now())
    services.run_schedules()
    services.run_due()
    return ExportJob.objects.get()


def test_the_message_has_a_link_that_needs_sign_in_and_no_figures(auditor: User, client: Client) -> None:
    job = ran(kept(auditor))

    assert services.tell_recipients() == 1
    assert services.tell_recipients() == 0

    (message,) = mail.outbox
    assert message.to == [auditor.email]
    assert f"https://office.example{job.get_absolute_url()}" in message.body
    assert "Every morning" in message.subject
    assert str(job.rows) not in message.body.replace(str(job.pk), "").replace("seven", "")
    assert job.sha256 not in message.body
    assert message.attachments == []
    assert "sign-in" in client.get(job.get_absolute_url())["Location"]


def test_a_message_that_cannot_be_sent_is_tried_again(auditor: User, settings: Settings) -> None:
    job = ran(kept(auditor))
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # where nobody listens

    assert services.tell_recipients() == 0

    kept_at = ExportJob.objects.get(pk=job.pk).mail_at
    assert kept_at is not None
    assert kept_at > clock.now() + mailing.TRY_AGAIN_AFTER - timedelta(minutes=1)
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    ExportJob.objects.filter(pk=job.pk).update(mail_at=clock.now())
    assert services.tell_recipients() == 1


def test_a_name_of_two_lines_makes_one_subject(auditor: User) -> None:
    ran(kept(auditor, name="Every morning\nBcc: somebody@elsewhere.example"))

    assert services.tell_recipients() == 1
    assert mail.outbox[0].subject == "Countersign: Every morning Bcc: somebody@elsewhere.example"


def test_no_message_for_somebody_who_may_no_longer_read_it(auditor: User) -> None:
    ran(kept(auditor))
    auditor.groups.clear()

    assert services.tell_recipients() == 0
    assert mail.outbox == []


def test_what_somebody_asked_for_brings_no_message(auditor: User) -> None:
    services.request_export(auditor, {"report": "audit-log", "time_zone": "UTC"})
    services.run_due()

    assert ExportJob.objects.get().state == State.DONE
    assert services.tell_recipients() == 0


TYPED = {
    "name": "Every Monday",
    "frequency": "weekly",
    "weekday": "1",
    "day": "1",
    "hour": "6",
    "time_zone": "Africa/Lagos",
    "period": "last_week",
}


def test_a_schedule_is_made_on_its_page_with_the_filters_of_the_report(
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
    assert "Every Monday" in browser.get(answer["Location"]).content.decode()


def test_what_makes_no_sense_is_told_beside_its_field(client: Client, auditor: User, sign_in: SignIn) -> None:
    address = reverse("reports:new_schedule", args=["audit-log"])

    answer = sign_in(client, auditor).post(address, {**TYPED, "time_zone": "Atlantis", "recipients": []})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Choose a time zone from the list." in page
    assert "Choose at least one person." in page
    assert not Schedule.objects.exists()


def test_it_is_changed_paused_and_removed_by_its_owner(
    client: Client, auditor: User, sign_in: SignIn
) -> None:
    browser, schedule = sign_in(client, auditor), kept(auditor)

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
    told = ["created", "changed", "paused", "resumed", "removed"]
    assert [entry.action.partition(".")[2] for entry in entries] == told


@pytest.mark.parametrize("deed", ["schedule", "pause", "resume", "remove"])
def test_nobody_else_touches_it(
    client: Client, auditor: User, administrator: User, sign_in: SignIn, deed: str
) -> None:
    schedule = kept(auditor, auditor, administrator)

    answer = sign_in(client, administrator).post(reverse(f"reports:{deed}", args=[schedule.pk]), TYPED)

    assert answer.status_code == 404
    assert now(schedule).name == "Every morning"
    assert not now(schedule).is_paused


def test_a_recipient_sees_it_without_its_buttons(
    client: Client, auditor: User, administrator: User, sign_in: SignIn
) -> None:
    schedule = kept(auditor, auditor, administrator)

    page = sign_in(client, administrator).get(reverse("reports:schedules")).content.decode()

    assert "Every morning" in page
    assert reverse("reports:remove", args=[schedule.pk]) not in page


def test_files_of_a_removed_schedule_stay(auditor: User) -> None:
    schedule = kept(auditor)
    job = ran(schedule)

    services.remove_schedule(schedule.pk, actor=auditor)

    job = ExportJob.objects.get(pk=job.pk)
    assert (job.state, job.schedule) == (State.DONE, None)
    assert job.file.exists()
