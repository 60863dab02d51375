"""Schedules: exactly one export for each person and due moment, and nothing for whoever may not read it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.reports.errors import ReportNotAllowedError, ScheduleError
from backoffice.reports.models import ExportJob, ExportState, Schedule
from backoffice.reports.schedules import services
from backoffice.reports.schedules.services import recipients_with_obstacles
from tests.reports.export_requests import path_of
from tests.reports.schedule_requests import MEMBERS, is_due, now, ran, stored_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("public_address")]


def ended_yesterday() -> datetime:
    """Six in the morning in Lagos, some days ago."""
    return clock.now().replace(hour=5, minute=0, second=0, microsecond=0) - timedelta(days=3)


def test_a_new_schedule_runs_at_its_next_due_time(auditor: User) -> None:
    schedule = stored_schedule(auditor)

    assert schedule.next_at > clock.now()
    assert (schedule.next_at.hour, schedule.next_at.minute) == (5, 0)  # six in Lagos
    assert services.run_due_schedules() == 0
    assert Entry.objects.filter(action="schedule.created").get().actor_id == auditor.pk


def test_the_same_schedule_created_at_the_same_time_exists_once(auditor: User) -> None:
    start = Barrier(6)

    def create(_number: int) -> int:
        with closing(connection):
            start.wait(60)
            return stored_schedule(auditor).pk

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(create, range(6)))) == 1
    assert Schedule.objects.count() == 1


def test_each_recipient_gets_a_separate_export(auditor: User, administrator: User) -> None:
    schedule = stored_schedule(auditor, auditor, administrator)
    is_due(schedule, clock.now())

    assert services.run_due_schedules() == 1

    assert set(ExportJob.objects.values_list("person", flat=True)) == {auditor.pk, administrator.pk}
    assert now(schedule).next_at > clock.now()
    assert Entry.objects.filter(action="schedule.run").count() == 1


def test_the_period_ends_before_the_due_time_in_its_zone(auditor: User) -> None:
    schedule = stored_schedule(auditor, time_zone="Pacific/Auckland", hour=0)
    due = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=400)
    Schedule.objects.filter(pk=schedule.pk).update(frequency="monthly", day=due.day, next_at=due)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "_source", lambda: due + timedelta(minutes=1))
        services.run_due_schedules()

    job = ExportJob.objects.get()
    day = str(due.date())  # noon in UTC is midnight or later of the next day there
    assert job.filters == {"group": ["export"], "since": [day], "until": [day]}
    assert (job.time_zone, job.columns) == ("Pacific/Auckland", ["position", "action"])


def test_a_report_with_fixed_days_covers_completed_days(auditor: User) -> None:
    """Six in the morning in Auckland is the evening before in UTC, so that day is not over."""
    schedule = stored_schedule(
        auditor, report="reconciliation", filters={}, columns=[], time_zone="Pacific/Auckland"
    )
    is_due(schedule, datetime(2026, 3, 4, 17, tzinfo=UTC))
    with clock.use_clock(lambda: datetime(2026, 3, 4, 17, 1, tzinfo=UTC)):
        services.run_due_schedules()

    assert ExportJob.objects.get().filters == {"since": ["2026-03-03"], "until": ["2026-03-03"]}


@pytest.mark.parametrize(
    ("period", "due", "days"),
    [
        ("last_month", datetime(2026, 11, 30, 22, tzinfo=UTC), ("2026-11-01", "2026-11-30")),
        ("last_week", datetime(2026, 11, 29, 22, tzinfo=UTC), ("2026-11-23", "2026-11-29")),
    ],
)
def test_a_week_or_month_is_that_before_the_day_in_the_zone_of_the_schedule(
    auditor: User, period: str, due: datetime, days: tuple[str, str]
) -> None:
    """Six in the morning in Singapore, on the first of December and on a Monday: it is the day before in UTC."""
    schedule = stored_schedule(
        auditor, report="reconciliation", filters={}, columns=[], time_zone="Asia/Singapore", period=period
    )
    is_due(schedule, due)
    with clock.use_clock(lambda: due + timedelta(minutes=1)):
        services.run_due_schedules()

    job = ExportJob.objects.get()
    assert job.filters == {"since": [days[0]], "until": [days[1]]}
    assert job.covers_until == due + timedelta(hours=2)  # until then it waits


def test_a_schedule_that_fails_does_not_stop_the_others(auditor: User) -> None:
    failing, other = stored_schedule(auditor, name="A"), stored_schedule(auditor, name="B")
    for schedule in (failing, other):
        is_due(schedule, clock.now())
    Schedule.objects.filter(pk=failing.pk).update(
        time_zone="Asia/Rangoun"
    )  # as after a change of the system's zones

    assert services.run_due_schedules() == 1

    assert ExportJob.objects.get().schedule == other
    assert now(failing).last_at is None


def test_two_concurrent_ticks_make_one_run(auditor: User) -> None:
    schedule = stored_schedule(auditor)
    is_due(schedule, clock.now())

    def attempt(_number: int) -> int:
        try:
            return services.run_due_schedules()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(attempt, range(4)))

    assert sum(ran) == 1
    assert ExportJob.objects.count() == 1


def test_the_database_refuses_a_second_export_of_one_due_time(auditor: User) -> None:
    schedule = stored_schedule(auditor)
    is_due(schedule, clock.now())
    services.run_due_schedules()
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


def test_after_an_outage_it_runs_once_for_the_latest_due_time(auditor: User) -> None:
    schedule = stored_schedule(auditor)
    is_due(schedule, ended_yesterday())

    services.run_due_schedules()
    services.run_due_schedules()

    job = ExportJob.objects.get()
    assert job.due_at is not None
    assert timedelta(0) <= clock.now() - job.due_at < timedelta(days=1)


def test_a_paused_schedule_does_not_run_or_catch_up(auditor: User) -> None:
    schedule = stored_schedule(auditor)
    services.pause_schedule(schedule.pk, actor=auditor)
    is_due(schedule, ended_yesterday())

    assert services.run_due_schedules() == 0
    services.resume_schedule(schedule.pk, actor=auditor)
    assert services.run_due_schedules() == 0

    assert now(schedule).next_at > clock.now()
    entries = Entry.objects.filter(action__startswith="schedule.").order_by("position")
    assert [entry.action for entry in entries] == ["schedule.created", "schedule.paused", "schedule.resumed"]


def test_a_schedule_with_messages_needs_a_public_url(auditor: User, settings: Settings) -> None:
    schedule = stored_schedule(auditor)
    services.pause_schedule(schedule.pk, actor=auditor)
    settings.PUBLIC_URL = ""

    with pytest.raises(ScheduleError, match="COUNTERSIGN_PUBLIC_URL"):
        stored_schedule(auditor)
    with pytest.raises(ScheduleError, match="COUNTERSIGN_PUBLIC_URL"):
        services.change_schedule(schedule.pk, MEMBERS, [auditor], actor=auditor)
    with pytest.raises(ScheduleError, match="COUNTERSIGN_PUBLIC_URL"):
        services.resume_schedule(schedule.pk, actor=auditor)

    assert Schedule.objects.get().is_paused


def test_recipients_need_the_permission_of_the_report(auditor: User, preparer: User) -> None:
    with pytest.raises(ReportNotAllowedError):
        stored_schedule(auditor, auditor, preparer)
    with pytest.raises(ReportNotAllowedError):
        stored_schedule(preparer, auditor)

    assert not Schedule.objects.exists()


def test_a_recipient_who_lost_the_permission_is_skipped_and_reported(
    auditor: User, administrator: User
) -> None:
    schedule = stored_schedule(administrator, auditor, administrator)
    auditor.groups.clear()
    is_due(schedule, clock.now())

    services.run_due_schedules()

    assert list(ExportJob.objects.values_list("person", flat=True)) == [administrator.pk]
    obstacle = "Femi Ade: this person no longer has permission for the report"
    assert now(schedule).last_obstacles_text == obstacle
    assert recipients_with_obstacles([now(schedule)]) == {schedule.pk: [obstacle]}
    entry = Entry.objects.filter(action="schedule.run").get()
    assert entry.detail["not_sent"] == [{"code": "not_allowed", "person": "Femi Ade"}]
    assert dict(entry.facts)["Not sent"] == obstacle


def test_a_deactivated_recipient_is_skipped(auditor: User, administrator: User) -> None:
    schedule = stored_schedule(administrator, auditor)
    User.objects.filter(pk=auditor.pk).update(is_active=False)
    is_due(schedule, clock.now())

    services.run_due_schedules()

    assert not ExportJob.objects.exists()
    assert "deactivated" in now(schedule).last_obstacles_text


def test_a_schedule_of_a_deactivated_owner_does_not_run(auditor: User, administrator: User) -> None:
    schedule = stored_schedule(administrator, auditor)
    User.objects.filter(pk=administrator.pk).update(is_active=False)
    is_due(schedule, clock.now())

    services.run_due_schedules()

    assert not ExportJob.objects.exists()
    assert "the owner, Zainab Musa, no longer has permission" in now(schedule).last_obstacles_text


@pytest.mark.parametrize(
    "changes", [{"report": "api-keys", "period": "yesterday", "filters": {}, "columns": []}]
)
def test_a_report_without_days_has_no_period(auditor: User, changes: dict[str, Any]) -> None:
    with pytest.raises(ScheduleError):
        stored_schedule(auditor, **changes)


def test_files_of_a_deleted_schedule_are_kept(auditor: User) -> None:
    schedule = stored_schedule(auditor)
    job = ran(schedule)

    services.delete_schedule(schedule.pk, actor=auditor)

    job = ExportJob.objects.get(pk=job.pk)
    assert (job.state, job.schedule) == (ExportState.DONE, None)
    assert path_of(job).exists()
