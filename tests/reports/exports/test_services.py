"""Exports in the background: whole files, on record, by the rights of their person."""

import csv
import hashlib
from datetime import timedelta
from itertools import product
from typing import ClassVar

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.models import Entry
from backoffice.core.storage.files import EXPORTS, PrivateFolder, ReadableFile
from backoffice.reports.errors import ExportGoneError, ReportNotAllowedError
from backoffice.reports.exports import runner, services
from backoffice.reports.models import TRANSITIONS, ExportJob, ExportState, change_state, work_folder
from tests.reports.export_requests import actions, files, made, now, path_of, requested_export

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_folder")]


def test_a_finished_export_is_a_file_with_its_digest_and_rows(auditor: User) -> None:
    job = made(auditor)

    content = path_of(job).read_bytes()
    rows = list(csv.reader(content.decode().splitlines()))
    assert (job.state, job.size, job.rows) == (ExportState.DONE, len(content), len(rows) - 1)
    assert job.sha256 == hashlib.sha256(content).hexdigest()
    assert rows[0] == ["Position", "Actor", "Action"]
    assert rows[1][2] == "export.requested"
    assert job.name.startswith("countersign-audit-log-as-of-")
    assert job.expires_at is not None
    assert job.ended_at is not None
    assert job.expires_at - job.ended_at == timedelta(days=7)


def test_the_file_is_readable_by_its_owner_only(auditor: User) -> None:
    job = made(auditor)

    assert path_of(job).stat().st_mode & 0o777 == 0o600
    assert work_folder().stat().st_mode & 0o777 == 0o700
    assert "audit" not in job.stored_as
    assert files() == [job.stored_as]


def test_an_export_is_audited_from_request_to_file(auditor: User) -> None:
    job = made(auditor)

    assert actions(job) == ["export.requested", "export.completed"]
    completed = Entry.objects.filter(action="export.completed").get()
    assert completed.actor_id == auditor.pk
    assert completed.detail["sha256"] == job.sha256
    assert completed.detail["rows"] == job.rows


def test_unlisted_transitions_are_refused(auditor: User) -> None:
    job = requested_export(auditor)
    for before, to in product(ExportState, ExportState):
        ExportJob.objects.filter(pk=job.pk).update(state=before, size=1, sha256="0", stored_as="x")

        assert change_state(now(job), to) is (to in TRANSITIONS[before]), (before, to)
        assert now(job).state == (to if to in TRANSITIONS[before] else before)


def test_the_database_refuses_a_finished_export_without_a_file(auditor: User) -> None:
    job = requested_export(auditor)

    with pytest.raises(IntegrityError), transaction.atomic():
        ExportJob.objects.filter(pk=job.pk).update(state=ExportState.DONE)


def test_requesting_a_report_needs_its_permission(preparer: User) -> None:
    with pytest.raises(ReportNotAllowedError):
        requested_export(preparer)

    assert not ExportJob.objects.exists()


def test_an_export_fails_if_its_user_lost_the_permission(auditor: User) -> None:
    job = requested_export(auditor)
    auditor.groups.clear()

    runner.run_export(job.pk)

    job = now(job)
    assert (job.state, job.failure_text) == (
        ExportState.FAILED,
        "Femi Ade does not have permission for this report.",
    )
    assert files() == []
    assert actions(job) == ["export.requested", "export.failed"]


def test_a_download_is_refused_if_its_user_lost_the_permission(auditor: User) -> None:
    job = made(auditor)
    auditor.groups.clear()

    with pytest.raises(ReportNotAllowedError):
        services.open_export(job.pk, actor=User.objects.get(pk=auditor.pk))

    assert "export.downloaded" not in actions(job)


def test_every_download_is_audited(auditor: User) -> None:
    job = made(auditor)

    for _ in range(2):
        _, file = services.open_export(job.pk, actor=auditor)
        with file:
            assert hashlib.sha256(file.read()).hexdigest() == job.sha256

    assert actions(job)[2:] == ["export.downloaded", "export.downloaded"]


class ObservedFolder(PrivateFolder):
    """Says whether a transaction was open when a file was read."""

    were_in_transaction: ClassVar[list[bool]] = []

    def read(self, name: str) -> ReadableFile:
        self.were_in_transaction.append(connection.in_atomic_block)
        return super().read(name)


def test_no_transaction_waits_for_the_store(auditor: User, settings: Settings) -> None:
    job = made(auditor)
    folder = {**settings.STORAGES[EXPORTS], "BACKEND": f"{__name__}.{ObservedFolder.__name__}"}
    settings.STORAGES = {**settings.STORAGES, EXPORTS: folder}

    _, file = services.open_export(job.pk, actor=auditor)
    file.close()

    assert ObservedFolder.were_in_transaction == [False]


def test_a_missing_file_is_not_audited_as_downloaded(auditor: User) -> None:
    job = made(auditor)
    path_of(job).unlink()

    with pytest.raises(ExportGoneError):
        services.open_export(job.pk, actor=auditor)

    assert "export.downloaded" not in actions(job)


def test_an_ended_export_cannot_be_cancelled(auditor: User) -> None:
    job = made(auditor)

    with pytest.raises(ExportGoneError):
        services.cancel_export(job.pk, actor=auditor)

    assert now(job).state == ExportState.DONE


def test_an_export_can_be_repeated(auditor: User) -> None:
    job = made(auditor, filters={"group": ["export"]}, has_byte_order_mark=True)

    again = services.repeat_export(job, actor=auditor)

    assert again.pk != job.pk
    assert again.request_fields == job.request_fields
    with pytest.raises(ExportGoneError):
        services.repeat_export(again, actor=auditor)


def test_background_exports_apply_filters_columns_and_zone(auditor: User) -> None:
    job = made(
        auditor,
        filters={"group": ["export"], "since": ["2026-01-01"]},
        columns=["at", "action"],
        time_zone="Asia/Kathmandu",
        has_byte_order_mark=True,
    )

    content = path_of(job).read_bytes()
    assert content.startswith(b"\xef\xbb\xbfTime,Action\r\n")
    assert b"+05:45,export.requested\r\n" in content
    assert job.name.startswith("countersign-audit-log-2026-01-01-to-")


def test_an_outdated_filter_fails_the_export(auditor: User) -> None:
    job = requested_export(auditor, filters={"actor": ["999999"]})

    runner.run_export(job.pk)

    assert now(job).state == ExportState.FAILED
    assert "actor" in now(job).failure_text


def test_a_deactivated_person_gets_no_file(auditor: User) -> None:
    job = requested_export(auditor)
    User.objects.filter(pk=auditor.pk).update(is_active=False)

    runner.run_export(job.pk)

    assert now(job).state == ExportState.FAILED


def test_a_restored_role_allows_a_new_export(auditor: User) -> None:
    job = requested_export(auditor)
    auditor.groups.clear()
    runner.run_export(job.pk)
    auditor.groups.set(Group.objects.filter(name=Role.AUDITOR))

    again = services.repeat_export(now(job), actor=User.objects.get(pk=auditor.pk))
    runner.run_export(again.pk)

    assert now(again).state == ExportState.DONE
