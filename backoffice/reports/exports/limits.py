"""Limits of exports: how many may wait, be kept or be sent at once, how much disk space stays free, and from
how many rows an export runs in background.
"""

import errno
import json
import shutil
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core import leases
from backoffice.reports.errors import DownloadsBusyError, FailureCode, QuotaExceededError
from backoffice.reports.models import ACTIVE_STATES, ExportJob, ExportState, work_folder
from backoffice.reports.report import ComputedReport, ExportRequest, FileFormat, StoredReport

QUOTA_LOCK = "exports"
"""Lock that serialises the quota checks of people and schedules. It is taken before the audit log's lock."""
_MEGABYTE = 1024 * 1024
_DISK_FULL_CODES = frozenset({errno.ENOSPC, errno.EDQUOT})


def check_export_quota(person: User) -> None:
    """Raise QuotaExceededError if the person may not request another export.

    Holds `QUOTA_LOCK` until commit.

    Exports made by schedules are counted separately, so that neither kind blocks the other.
    """
    leases.lock_until_commit(QUOTA_LOCK)
    check_disk_space()
    counted = _counted_exports().filter(due_at=None)
    if counted.filter(person=person).count() >= settings.EXPORTS_PER_PERSON:
        raise QuotaExceededError(FailureCode.QUOTA_OF_PERSON, limit=settings.EXPORTS_PER_PERSON)
    if counted.count() >= settings.EXPORTS_TOTAL:
        raise QuotaExceededError(FailureCode.QUOTA_TOTAL, limit=settings.EXPORTS_TOTAL)


def check_schedule_quota(person: User) -> None:
    """The same for exports made by schedules; each recipient has a separate quota. Raises QuotaExceededError."""
    leases.lock_until_commit(QUOTA_LOCK)
    check_disk_space()
    if (
        _counted_exports().filter(due_at__isnull=False, person=person).count()
        >= settings.SCHEDULED_EXPORTS_PER_PERSON
    ):
        raise QuotaExceededError(FailureCode.QUOTA_SCHEDULED, limit=settings.SCHEDULED_EXPORTS_PER_PERSON)


def _counted_exports() -> QuerySet[ExportJob]:
    return ExportJob.objects.filter(state__in=ACTIVE_STATES | {ExportState.DONE})


def check_disk_space() -> None:
    """Raise QuotaExceededError if less disk space is free than the configured reserve."""
    reserve = settings.EXPORT_DISK_RESERVE_MB * _MEGABYTE
    if shutil.disk_usage(work_folder()).free < reserve:
        raise QuotaExceededError(FailureCode.DISK_RESERVE, reserve=reserve)


def is_disk_full(error: BaseException) -> bool:
    """Whether the error means that the disk, or this user's disk quota, is full."""
    return isinstance(error, OSError) and error.errno in _DISK_FULL_CODES


_slots = BoundedSemaphore(settings.EXPORT_STREAMS)


class DownloadSlot:
    """One of the `EXPORT_STREAMS` concurrent downloads, until `release`.

    Raises DownloadsBusyError at once if none is free.
    """

    def __init__(self) -> None:
        if not _slots.acquire(blocking=False):
            raise DownloadsBusyError(FailureCode.DOWNLOADS_BUSY)
        self._is_held = True

    def release(self) -> None:
        """Release the slot. Idempotent."""
        if self._is_held:
            self._is_held = False
            _slots.release()


MAX_COMPUTED_ROWS = 50_000  # rows that Python can compute while a person waits
MAX_XLSX_ROWS = 10_000  # an Excel file cannot start before its last row is known


def estimated_rows(export_request: ExportRequest) -> int | None:
    """The estimate of PostgreSQL's planner; on SQLite a count up to the limit.

    None if there is no query to count.
    """
    query = _counted_query(export_request)
    if query is None:
        return None
    if connection.vendor == "postgresql":
        return _planner_rows(query)
    return query.order_by()[: settings.EXPORT_STREAM_ROWS + 1].count()


def needs_background(export_request: ExportRequest, estimate: int | None) -> bool:
    """Whether the file is too large to be produced while a person waits."""
    return (estimate or 0) > _row_limit(export_request)


def _row_limit(export_request: ExportRequest) -> int:
    at_most: int = settings.EXPORT_STREAM_ROWS
    if export_request.format == FileFormat.XLSX:
        return min(at_most, MAX_XLSX_ROWS)
    return at_most if isinstance(export_request.report, StoredReport) else min(at_most, MAX_COMPUTED_ROWS)


def _counted_query(export_request: ExportRequest) -> QuerySet[Any] | None:
    match export_request.report:
        case StoredReport() as report:
            return report.query(export_request.user, export_request.form)
        case ComputedReport(counted=counted) if counted is not None:
            return counted(export_request.user, export_request.form)
    return None


def _planner_rows(query: QuerySet[Any]) -> int:
    plan = query.order_by().explain(format="json")
    # Without a plan no row can match, so that Django does not ask the database.
    return int(json.loads(plan)[0]["Plan"]["Plan Rows"]) if plan else 0
