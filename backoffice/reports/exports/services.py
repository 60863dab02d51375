"""Request, repeat, cancel, open and remove background exports; delete expired and abandoned files."""

import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Min

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import background, clock
from backoffice.reports.errors import ExportGoneError
from backoffice.reports.exports.quotas import check_export_quota, check_schedule_quota
from backoffice.reports.exports.request_codec import readable_report
from backoffice.reports.exports.selectors import past_period_end
from backoffice.reports.models import ExportJob, ExportState, change_state, export_folder
from backoffice.reports.rendering.xlsx import TEMP_FOLDER_PREFIX

RUN_TASK = "reports.run_export"


@transaction.atomic
def request_export(user: User, wish: Mapping[str, Any], **of_schedule: Any) -> ExportJob:
    """Create an export for this person and enqueue its task.

    Raises ReportNotAllowedError, QuotaExceededError.
    """
    report = readable_report(user, wish["report"])
    if of_schedule:
        check_schedule_quota(user)
    else:
        check_export_quota(user)
    now = clock.now()
    job = ExportJob.objects.create(
        person=user, created_at=now, covers_until=past_period_end(report, wish, now), **wish, **of_schedule
    )
    audit.record(
        Action.EXPORT_REQUESTED,
        actor=user,
        target=f"the report {report.title}",
        report=report.name,
        filters={name: ", ".join(values) for name, values in job.filters.items()},
        export=str(job.pk),
    )
    background.enqueue_on_commit(RUN_TASK, job.pk)
    return job


@transaction.atomic
def repeat_export(job: ExportJob, *, actor: User) -> ExportJob:
    """Request a new export of the same content.

    Raises ReportNotAllowedError, QuotaExceededError, and ExportGoneError while the first one is in progress.
    """
    if job.is_under_way:
        raise ExportGoneError("It is still being made.")
    return request_export(actor, job.wish)


@transaction.atomic
def record_refused_export(user: User, wish: Mapping[str, Any], problem: str, **of_schedule: Any) -> ExportJob:
    """Create an export that failed before it started, so that it is listed and its e-mail is sent."""
    now = clock.now()
    job = ExportJob.objects.create(
        person=user,
        created_at=now,
        ended_at=now,
        state=ExportState.FAILED,
        problem=problem,
        mail_at=now,
        **wish,
        **of_schedule,
    )
    audit.record(Action.EXPORT_FAILED, actor=user, target=str(job), export=str(job.pk), reason=problem)
    return job


@transaction.atomic
def cancel_export(pk: UUID, *, actor: User) -> ExportJob:
    """Cancel it; a runner stops at the next chunk and deletes its file.

    Raises ExportGoneError if it has ended.
    """
    job = ExportJob.objects.select_for_update().get(pk=pk)
    if not change_state(job, ExportState.CANCELLED, ended_at=clock.now(), lease_until=None):
        raise ExportGoneError("It had ended before.")
    audit.record(Action.EXPORT_CANCELLED, actor=actor, target=str(job), export=str(job.pk))
    return job


def remove_export(pk: UUID, *, actor: User) -> ExportJob:
    """Delete a finished file before it expires. Raises ExportGoneError if there is none."""
    job = ExportJob.objects.get(pk=pk)
    path = job.file
    with transaction.atomic():
        if not job.stored_as or not change_state(job, ExportState.REMOVED, stored_as=""):
            raise ExportGoneError("There is no file to remove.")
        audit.record(Action.EXPORT_REMOVED, actor=actor, target=str(job), export=str(job.pk))
    path.unlink(missing_ok=True)
    return job


@transaction.atomic
def open_export(pk: UUID, *, actor: User) -> tuple[ExportJob, IO[bytes]]:
    """The finished export and its open file, for download. Raises ReportNotAllowedError, ExportGoneError.

    The download is recorded only once the file is open, so none is recorded for a file that is gone.
    """
    job = ExportJob.objects.get(pk=pk)
    readable_report(actor, job.report)
    if job.state != ExportState.DONE or _is_expired(job, clock.now()):
        raise ExportGoneError("There is no file to take away.")
    with ExitStack() as opened:
        file = opened.enter_context(_open_file(job))
        audit.record(
            Action.EXPORT_DOWNLOADED, actor=actor, target=str(job), export=str(job.pk), sha256=job.sha256
        )
        opened.pop_all()
    return job, file


def _open_file(job: ExportJob) -> IO[bytes]:
    try:
        return job.file.open("rb")
    except FileNotFoundError as exc:
        raise ExportGoneError("There is no file to take away.") from exc


def _is_expired(job: ExportJob, now: datetime) -> bool:
    return job.expires_at is not None and job.expires_at <= now


ABANDONED_AFTER = timedelta(hours=2)  # longer than any runner writes one file


def delete_expired_exports() -> int:
    """Expire exports that are due and delete files that belong to no export.

    Returns how many files were deleted.
    """
    expired = ExportJob.objects.filter(state=ExportState.DONE, expires_at__lte=clock.now())
    return sum(map(_expire, expired)) + sum(map(_delete_abandoned, _abandoned_files()))


def _expire(job: ExportJob) -> bool:
    """The state changes first: a file that no export names is deleted in any case."""
    path = job.file
    with transaction.atomic():
        is_ours = change_state(job, ExportState.EXPIRED, stored_as="")
        if is_ours:
            audit.record(Action.EXPORT_EXPIRED, actor=None, target=str(job), export=str(job.pk))
    if is_ours:
        path.unlink(missing_ok=True)
    return is_ours


def _abandoned_files() -> list[Path]:
    """Files that no export names, written before the oldest running export started, with a margin."""
    begun = ExportJob.objects.filter(state=ExportState.RUNNING).aggregate(first=Min("started_at"))["first"]
    oldest = min(begun or clock.now(), clock.now()) - ABANDONED_AFTER
    forgotten = [
        path
        for path in export_folder().iterdir()
        if _is_export_file(path) and _last_written(path) < oldest.timestamp()
    ]
    if not forgotten:
        return []
    names = [path.name for path in forgotten]
    kept = set(ExportJob.objects.filter(stored_as__in=names).values_list("stored_as", flat=True))
    return [path for path in forgotten if path.name not in kept]


def _is_export_file(path: Path) -> bool:
    return path.is_file() or path.name.startswith(TEMP_FOLDER_PREFIX)


def _last_written(path: Path) -> float:
    """For a folder, the time of the newest file in it. A path deleted meanwhile counts as new."""
    try:
        return max(one.stat().st_mtime for one in (path, *path.glob("*")))
    except FileNotFoundError:
        return time.time()


def _delete_abandoned(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return True
