"""Exports are bounded: in number, for one person and for all, and in what they leave of the disk."""

import errno
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import translation
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock, leases
from backoffice.reports.errors import ExportGoneError, QuotaExceededError
from backoffice.reports.exports import limits, runner, services
from backoffice.reports.exports.services import record_refused_export
from backoffice.reports.models import ExportJob, ExportState
from backoffice.reports.schedules import services as services_schedules
from backoffice.reports.schedules.services import delete_schedule, run_due_schedules
from tests.reports.export_requests import actions, files, made, now, numbers, requested_export
from tests.reports.schedule_requests import is_due, ran, stored_schedule

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_folder", "public_address"),
]
SignIn = Callable[[Client, User], Client]
MORE_THAN_ANY_DISK = 2**50  # megabytes


def test_exports_per_user_are_limited(auditor: User, administrator: User, settings: Settings) -> None:
    settings.EXPORTS_PER_PERSON = 2
    first, _ = made(auditor), requested_export(auditor)

    with pytest.raises(QuotaExceededError, match="limit of 2 exports"):
        requested_export(auditor)
    with pytest.raises(QuotaExceededError):
        services.repeat_export(first, actor=auditor)
    requested_export(administrator)

    services.remove_export(first.pk, actor=auditor)
    requested_export(auditor)
    assert ExportJob.objects.filter(person=auditor).count() == 3


def test_a_query_that_no_row_can_match_is_estimated_without_the_planner() -> None:
    assert limits._planner_rows(ExportJob.objects.none()) == 0


@pytest.mark.parametrize(
    "state", [ExportState.CANCELLED, ExportState.FAILED, ExportState.EXPIRED, ExportState.REMOVED]
)
def test_exports_without_a_file_do_not_count(auditor: User, settings: Settings, state: ExportState) -> None:
    settings.EXPORTS_PER_PERSON = 1
    ExportJob.objects.filter(pk=requested_export(auditor).pk).update(state=state)
    requested_export(auditor)


def test_exports_of_all_users_are_limited(auditor: User, administrator: User, settings: Settings) -> None:
    settings.EXPORTS_TOTAL = 1
    requested_export(auditor)

    with pytest.raises(QuotaExceededError, match="This installation has reached the limit"):
        requested_export(administrator)


def test_a_user_can_delete_an_export_early(auditor: User) -> None:
    job = made(auditor)
    services.remove_export(job.pk, actor=auditor)

    assert files() == []
    assert now(job).state == ExportState.REMOVED
    assert actions(job)[-1] == "export.deleted"
    with pytest.raises(ExportGoneError):
        services.remove_export(job.pk, actor=auditor)


def test_no_export_starts_below_the_disk_reserve(auditor: User, settings: Settings) -> None:
    job = requested_export(auditor)
    settings.EXPORT_DISK_RESERVE_MB = MORE_THAN_ANY_DISK

    with pytest.raises(QuotaExceededError, match="of disk space is free"):
        requested_export(auditor)
    runner.run_export(job.pk)

    assert now(job).state == ExportState.FAILED
    assert "disk" in now(job).failure_text
    assert files() == []


def test_the_missing_disk_space_is_stored_in_no_language(
    auditor: User, offer: Callable[[Callable[[], Iterator[object]]], None], settings: Settings
) -> None:
    def growing() -> Iterator[object]:
        settings.EXPORT_DISK_RESERVE_MB = MORE_THAN_ANY_DISK
        yield from range(100_000)

    offer(growing)
    job = requested_export(auditor, report="numbers", columns=[], language="fr")
    runner.run_export(job.pk)

    texts = {}
    for language in ("en", "fr"):
        with translation.override(language):
            texts[language] = now(job).failure_text
    assert "\N{NO-BREAK SPACE}PB " in texts["en"]
    assert "\N{NO-BREAK SPACE}Pio " in texts["fr"]


def test_a_disk_that_fills_up_fails_the_export_and_leaves_no_file(
    auditor: User, offer: Callable[[Callable[[], Iterator[object]]], None], settings: Settings
) -> None:
    begun: list[Path] = []

    def growing() -> Iterator[object]:
        yield from range(100_000)
        begun.extend(Path(name) for name in files())
        settings.EXPORT_DISK_RESERVE_MB = MORE_THAN_ANY_DISK
        yield from range(100_000)

    offer(growing)
    job = numbers(auditor)
    runner.run_export(job.pk)

    assert len(begun) == 1
    assert now(job).state == ExportState.FAILED
    assert "disk" in now(job).failure_text
    assert files() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_as_the_reason(
    auditor: User, offer: Callable[[Callable[[], Iterator[object]]], None], number: int
) -> None:
    def full() -> Iterator[object]:
        yield from range(100_000)
        raise OSError(number, "what a write to a full disk raises")

    offer(full)
    job = numbers(auditor)
    runner.run_export(job.pk)

    assert (now(job).state, now(job).failure) == (ExportState.FAILED, {"code": "disk_full"})
    assert files() == []


def test_a_disk_that_is_full_when_an_excel_file_is_packed_is_reported_as_the_reason(
    auditor: User,
    offer: Callable[[Callable[[], Iterator[object]]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_archive: zipfile.ZipFile, *_file: str) -> None:
        raise OSError(errno.ENOSPC, "what a write to a full disk raises")

    monkeypatch.setattr(zipfile.ZipFile, "write", full)
    offer(lambda: iter(range(3)))
    job = requested_export(auditor, report="numbers", columns=[], format="xlsx")
    runner.run_export(job.pk)

    assert (now(job).state, now(job).failure) == (ExportState.FAILED, {"code": "disk_full"})
    assert files() == []


def test_an_exceeded_quota_is_reported_at_the_button_and_keeps_the_input(
    client: Client, auditor: User, sign_in: SignIn, settings: Settings
) -> None:
    settings.EXPORTS_PER_PERSON = 0
    sent = {"then": "background", "group": "export", "columns": ["action"]}

    answer = sign_in(client, auditor).post(reverse("reports:report", args=["audit-log"]), sent)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "limit of 0 exports" in page.partition('id="which-file"')[2].partition("<button")[0]
    assert '<option value="export" selected>' in page
    assert not ExportJob.objects.exists()


def test_an_exceeded_quota_is_reported_when_exporting_again(
    client: Client, auditor: User, sign_in: SignIn, settings: Settings
) -> None:
    job, browser = made(auditor), sign_in(client, auditor)
    settings.EXPORTS_PER_PERSON = 1

    page = browser.post(reverse("reports:repeat", args=[job.pk]), follow=True).content.decode()

    assert "limit of 1 exports" in page
    browser.post(reverse("reports:remove_export", args=[job.pk]))
    assert "You deleted the file." in browser.get(job.get_absolute_url()).content.decode()
    assert Entry.objects.filter(action="export.deleted").get().actor_id == auditor.pk


def test_schedules_and_users_acquire_quota_locks_in_one_order(
    auditor: User, administrator: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody asks in the moment in which the first recipient was refused and the second is to come."""
    settings.SCHEDULED_EXPORTS_PER_PERSON = 1
    ran(stored_schedule(auditor))
    schedule = stored_schedule(administrator, auditor, administrator)
    is_due(schedule, clock.now())
    holds, people = Event(), ThreadPoolExecutor(1)

    def asks() -> None:
        try:
            with transaction.atomic():
                leases.lock_until_commit(limits.QUOTA_LOCK)
                holds.set()
                audit.record(Action.EXPORT_REQUESTED, actor=administrator, target="the report of a test")
        finally:
            connection.close()

    def refuse(*arguments: Any, **members: Any) -> ExportJob:
        refused = record_refused_export(*arguments, **members)
        asking.append(people.submit(asks))
        holds.wait(1)  # for ever, where nobody lets go of it meanwhile
        return refused

    asking: list[Future[None]] = []
    monkeypatch.setattr(services_schedules, "record_refused_export", refuse)

    assert run_due_schedules() == 1
    assert [one.result(timeout=30) for one in asking] == [None]
    people.shutdown()
    assert (
        ExportJob.objects.filter(schedule=schedule, state=ExportState.WAITING).get().person == administrator
    )


def test_a_schedule_skips_recipients_without_quota_and_reports_them(
    auditor: User, administrator: User, settings: Settings
) -> None:
    settings.SCHEDULED_EXPORTS_PER_PERSON = 1
    ran(stored_schedule(auditor))
    schedule = stored_schedule(administrator, auditor, administrator)
    is_due(schedule, clock.now())

    assert run_due_schedules() == 1

    of_schedule = ExportJob.objects.filter(schedule=schedule)
    states = dict(of_schedule.values_list("person__pk", "state"))
    assert states == {auditor.pk: ExportState.FAILED, administrator.pk: ExportState.WAITING}
    assert (
        "The recipient has reached the limit of 1 scheduled files"
        in of_schedule.get(person=auditor).failure_text
    )


def test_scheduled_and_requested_exports_have_separate_quotas(
    auditor: User, administrator: User, settings: Settings
) -> None:
    settings.EXPORTS_PER_PERSON, settings.EXPORTS_TOTAL = 1, 2
    made_before = requested_export(auditor)
    schedule = stored_schedule(auditor, auditor, administrator)
    for _ in range(3):
        is_due(schedule, clock.now())
        assert run_due_schedules() == 1
    delete_schedule(schedule.pk, actor=auditor)

    assert ExportJob.objects.filter(state=ExportState.WAITING).exclude(pk=made_before.pk).count() == 6
    requested_export(administrator)
    with pytest.raises(QuotaExceededError, match="limit of 1 exports"):
        requested_export(auditor)
