"""Exports in an object store: made on one machine, read on every other."""

import os
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.core.storage.files import EXPORTS, file_store
from backoffice.reports.errors import FailureCode
from backoffice.reports.exports import runner, services
from backoffice.reports.models import ExportJob, ExportState, work_folder
from tests.object_store import bucket_options
from tests.reports.export_requests import files, made, now, requested_export

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_folder")]


def stored() -> list[str]:
    return [one.name for one in file_store(EXPORTS).all_files()]


def test_an_export_is_kept_in_the_bucket_and_not_here(bucket: str, reader: Client, auditor: User) -> None:
    job = made(auditor)
    assert (stored(), files()) == ([job.stored_as], [])
    answer = reader.get(reverse("reports:download", args=[job.pk]))
    content = b"".join(answer)
    assert content.startswith(b"Position,Actor,Action")
    assert len(content) == int(answer["Content-Length"]) == job.size
    services.remove_export(job.pk, actor=auditor)
    assert stored() == []


def test_another_person_does_not_get_a_file_of_the_bucket(
    bucket: str, client: Client, approver: User, auditor: User, sign_in: Callable[[Client, User], Client]
) -> None:
    job = made(auditor)
    assert sign_in(client, approver).get(reverse("reports:download", args=[job.pk])).status_code == 404
    services.remove_export(job.pk, actor=auditor)


def test_an_expired_export_leaves_the_bucket(bucket: str, auditor: User) -> None:
    job = made(auditor)
    ExportJob.objects.filter(pk=job.pk).update(expires_at=clock.now())
    assert services.delete_expired_exports() == 1
    assert stored() == []


def test_a_file_that_no_export_names_leaves_the_bucket_after_two_hours(
    bucket: str, auditor: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, part = made(auditor), work_folder() / "made.part"
    part.write_bytes(b"x")
    file_store(EXPORTS).put(part, "abandoned")
    assert services.delete_expired_exports() == 0
    monkeypatch.setattr(services, "ABANDONED_AFTER", timedelta(seconds=-5))
    monkeypatch.setattr(services, "STORE_CHECKED_EVERY", timedelta(0))
    assert services.delete_expired_exports() == 0  # another process looked less than an hour ago
    later = clock.now() + timedelta(hours=1, minutes=1)
    with clock.use_clock(lambda: later):
        assert services.delete_expired_exports() == 1
    assert stored() == [job.stored_as]
    services.remove_export(job.pk, actor=auditor)


def test_an_export_says_that_the_store_is_away(settings: Settings, auditor: User) -> None:
    settings.STORAGES = {**settings.STORAGES, EXPORTS: bucket_options("http://127.0.0.1:9", EXPORTS)}
    job = requested_export(auditor)
    runner.run_export(job.pk)
    job = now(job)
    assert (job.state, job.failure) == (ExportState.FAILED, {"code": FailureCode.STORE_UNAVAILABLE})
    assert files() == []


def test_an_export_says_that_the_store_refused_it(bucket: str, settings: Settings, auditor: User) -> None:
    refusing = bucket_options(bucket, EXPORTS, name="no-such-bucket")
    settings.STORAGES = {**settings.STORAGES, EXPORTS: refusing}
    job = requested_export(auditor)
    runner.run_export(job.pk)
    job = now(job)
    assert (job.state, job.failure) == (ExportState.FAILED, {"code": FailureCode.STORE_UNAVAILABLE})
    assert files() == []


def test_a_download_says_that_the_store_is_away_and_the_log_says_why(
    bucket: str, settings: Settings, reader: Client, auditor: User, caplog: pytest.LogCaptureFixture
) -> None:
    job = made(auditor)
    settings.STORAGES = {**settings.STORAGES, EXPORTS: bucket_options("http://127.0.0.1:9", EXPORTS)}
    answer = reader.get(reverse("reports:download", args=[job.pk]), follow=True)
    assert "File storage is not available at the moment." in answer.content.decode()
    assert f"The file of export {job.pk} could not be read" in caplog.text
    assert "EndpointConnectionError" in caplog.text


def test_a_file_in_the_making_is_as_old_as_this_machine_says(
    auditor: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose clock is hours behind must not delete what it writes now."""
    part = work_folder() / "being-written.part"
    part.write_bytes(b"x")
    hours_behind = time.time() - 5 * 3600
    os.utime(part, (hours_behind, hours_behind))
    monkeypatch.setattr(time, "time", lambda: hours_behind)
    assert services.delete_expired_exports() == 0
    assert files() == ["being-written.part"]
