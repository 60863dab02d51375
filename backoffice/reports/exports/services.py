"""Background exports: list, request, repeat, cancel, open and remove them; the freshness of their data; and the
deletion of expired and abandoned files.

The mirror is about a minute behind, or hours while the provider cannot be read. An export about past days
starts only once the mirror covers them, because such a file is not produced again.
"""

import logging
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Min, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import background, clock
from backoffice.core.database.queries import batched
from backoffice.core.leases import acquire_lease
from backoffice.core.storage.files import EXPORTS, FileStoreError, ReadableFile, file_store, is_shared
from backoffice.core.web.formatting import exact_zoned_time
from backoffice.core.web.forms import end_of_day
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.errors import ExportGoneError, FailureCode, ReportError, StoreUnavailableError
from backoffice.reports.exports.limits import check_export_quota, check_schedule_quota
from backoffice.reports.exports.request_codec import filter_form, readable_report
from backoffice.reports.models import ExportJob, ExportState, change_state, work_folder
from backoffice.reports.rendering.xlsx import TEMP_FOLDER_PREFIX
from backoffice.reports.report import AnyReport

logger = logging.getLogger(__name__)


def visible_exports(user: User) -> QuerySet[ExportJob]:
    """The person's own exports of reports that they may still read, newest first."""
    readable = [name for name, report in REPORTS.items() if report.may_be_read_by(user)]
    return ExportJob.objects.filter(person=user, report__in=readable).select_related("schedule")


MAX_SYNC_WAIT = timedelta(days=1)


_ONE_DAY = timedelta(days=1)


def past_period_end(report: AnyReport, request_fields: Mapping[str, Any], now: datetime) -> datetime | None:
    """The end of the requested period, if it is past and the report reads the mirror; otherwise None."""
    form = filter_form(report, request_fields.get("filters", {}))
    if report.synced_until is None or not form.is_valid():
        return None
    zone = report.zone_of_days(ZoneInfo(request_fields["time_zone"]))
    until = report.period(form).until
    with timezone.override(zone):
        end = end_of_day(until) if until else None
    return end if end and end <= now else None


def waiting_for_sync(now: datetime) -> Q:
    """Waiting exports whose period the mirror does not cover yet, or before the first load is complete.

    After `MAX_SYNC_WAIT` an export runs anyway, and the file's freshness text says what may be missing.
    """
    not_covered = Q()
    for synced_until in {report.synced_until for report in REPORTS.values() if report.synced_until}:
        reports_condition = Q(
            report__in=[name for name, report in REPORTS.items() if report.synced_until is synced_until]
        )
        as_of = synced_until()
        not_covered |= reports_condition & Q(covers_until__gt=as_of) if as_of else reports_condition
    return not_covered & Q(state=ExportState.WAITING, created_at__gt=now - MAX_SYNC_WAIT)


def freshness_text(job: ExportJob) -> str:
    """How far the mirror was synced when the file was started, and what may be missing.

    Empty for reports that do not read the mirror.
    """
    if job.report not in REPORTS or REPORTS[job.report].synced_until is None:
        return ""
    if job.as_of is None:
        return gettext("The first sync was not complete: transactions may be missing.")
    synced = exact_zoned_time(job.as_of)
    if job.covers_until and job.as_of < job.covers_until:
        return gettext("Transactions are synced up to {time}. Later ones are missing.").format(time=synced)
    return gettext("Transactions are synced up to {time}.").format(time=synced)


RUN_TASK = "reports.run_export"


@transaction.atomic
def request_export(user: User, request_fields: Mapping[str, Any], **schedule_fields: Any) -> ExportJob:
    """Create an export for this person and enqueue its task.

    Raises ReportNotAllowedError, QuotaExceededError.
    """
    report = readable_report(user, request_fields["report"])
    if schedule_fields:
        check_schedule_quota(user)
    else:
        check_export_quota(user)
    now = clock.now()
    job = ExportJob.objects.create(
        person=user,
        created_at=now,
        # A schedule's days are over in its own time zone, but perhaps not yet in the report's.
        covers_until=past_period_end(report, request_fields, now + _ONE_DAY if schedule_fields else now),
        **request_fields,
        **schedule_fields,
    )
    audit.record(
        Action.EXPORT_REQUESTED,
        actor=user,
        target=report.audit_target,
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
    if job.is_active:
        raise ExportGoneError(FailureCode.UNDER_WAY)
    return request_export(actor, job.request_fields)


@transaction.atomic
def record_refused_export(
    user: User, request_fields: Mapping[str, Any], error: ReportError, **schedule_fields: Any
) -> ExportJob:
    """Create an export that failed before it started, so that it is listed and its email is sent."""
    now = clock.now()
    job = ExportJob.objects.create(
        person=user,
        created_at=now,
        ended_at=now,
        state=ExportState.FAILED,
        failure=error.failure,
        mail_due_at=now,
        **request_fields,
        **schedule_fields,
    )
    audit.record(Action.EXPORT_FAILED, actor=user, target=str(job), export=str(job.pk), failure=job.failure)
    return job


@transaction.atomic
def cancel_export(pk: UUID, *, actor: User) -> ExportJob:
    """Cancel it; a runner stops at the next chunk and deletes its file.

    Raises ExportGoneError if it has ended.
    """
    job = ExportJob.objects.select_for_update().get(pk=pk)
    if not change_state(job, ExportState.CANCELLED, ended_at=clock.now()):
        raise ExportGoneError(FailureCode.ENDED_BEFORE)
    audit.record(Action.EXPORT_CANCELLED, actor=actor, target=str(job), export=str(job.pk))
    return job


def remove_export(pk: UUID, *, actor: User) -> ExportJob:
    """Delete a finished file before it expires. Raises ExportGoneError if there is none."""
    job = ExportJob.objects.get(pk=pk)
    stored_as = job.stored_as
    with transaction.atomic():
        if not job.stored_as or not change_state(job, ExportState.REMOVED, stored_as=""):
            raise ExportGoneError(FailureCode.NOTHING_TO_REMOVE)
        audit.record(Action.EXPORT_DELETED, actor=actor, target=str(job), export=str(job.pk))
    _delete_stored(stored_as)
    return job


def open_export(pk: UUID, *, actor: User) -> tuple[ExportJob, ReadableFile]:
    """The finished export and its open file, for download. Raises ReportNotAllowedError, ExportGoneError,
    StoreUnavailableError.

    The download is recorded only once the file is open, so none is recorded for a file that is gone.
    """
    job = ExportJob.objects.get(pk=pk)
    readable_report(actor, job.report)
    is_expired = job.expires_at is not None and job.expires_at <= clock.now()
    if job.state != ExportState.DONE or is_expired:
        raise ExportGoneError(FailureCode.NO_FILE)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(file_store(EXPORTS).read(job.stored_as))
        except FileNotFoundError as exc:
            raise ExportGoneError(FailureCode.NO_FILE) from exc
        except FileStoreError as exc:
            logger.warning("The file of export %s could not be read", pk, exc_info=True)
            raise StoreUnavailableError(FailureCode.STORE_UNAVAILABLE) from exc
        with transaction.atomic():
            audit.record(
                Action.EXPORT_DOWNLOADED, actor=actor, target=str(job), export=str(job.pk), sha256=job.sha256
            )
        stack.pop_all()
    return job, file


ABANDONED_AFTER = timedelta(hours=2)  # longer than any runner writes one file
STORE_CHECKED_EVERY = timedelta(hours=1)


def delete_expired_exports() -> int:
    """Expire exports that are due and delete files that belong to no export: on this machine, and, every hour
    by one process of all machines, in the store.

    Returns how many files were deleted.
    """
    expired = ExportJob.objects.filter(state=ExportState.DONE, expires_at__lte=clock.now())
    deleted = sum(map(_expire, expired)) + sum(map(_delete_abandoned, _abandoned_work_files()))
    if is_shared() and acquire_lease("abandoned-exports", STORE_CHECKED_EVERY):
        deleted += sum(map(_delete_stored, _abandoned_stored_files()))
    return deleted


def _expire(job: ExportJob) -> bool:
    """The state changes first: a file that no export names is deleted in any case."""
    stored_as = job.stored_as
    with transaction.atomic():
        is_ours = change_state(job, ExportState.EXPIRED, stored_as="")
        if is_ours:
            audit.record(Action.EXPORT_EXPIRED, actor=None, target=str(job), export=str(job.pk))
    if is_ours:
        _delete_stored(stored_as)
    return is_ours


def _delete_stored(name: str) -> bool:
    """Delete it in the store. One that cannot be deleted now belongs to no export, and is deleted later."""
    try:
        file_store(EXPORTS).delete(name)
    except FileStoreError:
        logger.warning("A file of the exports could not be deleted and is deleted later", exc_info=True)
        return False
    return True


def _longest_run() -> timedelta:
    """How old a file may be and yet belong to an export that is running now."""
    running = ExportJob.objects.filter(state=ExportState.RUNNING)
    oldest_start, now = running.aggregate(first=Min("started_at"))["first"], clock.now()
    return ABANDONED_AFTER + (max(now - oldest_start, timedelta(0)) if oldest_start else timedelta(0))


def _abandoned_work_files() -> list[Path]:
    """Files here that no export names, older by this machine's clock than any export that is running."""
    newest = time.time() - _longest_run().total_seconds()
    old = [path for path in work_folder().iterdir() if _is_export_file(path) and _last_written(path) < newest]
    unnamed = _unnamed(path.name for path in old)
    return [path for path in old if path.name in unnamed]


def _abandoned_stored_files() -> list[str]:
    """The same in the store, whose clock is right within minutes: its requests are signed with their time."""
    newest = clock.now() - _longest_run()
    try:
        return sorted(
            _unnamed(one.name for one in file_store(EXPORTS).all_files() if one.changed_at < newest)
        )
    except FileStoreError:
        logger.warning("The store of exports cannot be listed", exc_info=True)
        return []


def _unnamed(names: Iterable[str]) -> set[str]:
    """Those that no export names."""
    unnamed = set[str]()
    for some in batched(names, 500):
        named = ExportJob.objects.filter(stored_as__in=some).values_list("stored_as", flat=True)
        unnamed |= set(some) - set(named)
    return unnamed


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
