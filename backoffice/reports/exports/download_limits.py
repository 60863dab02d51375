"""Limits of direct downloads: how many run at once, and from how many rows an export runs in background."""

import json
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from backoffice.reports.errors import DownloadsBusyError
from backoffice.reports.report import ComputedReport, ExportRequest, FileFormat, StoredReport

_slots = BoundedSemaphore(settings.EXPORT_STREAMS)


class DownloadSlot:
    """One of the `EXPORT_STREAMS` concurrent downloads, until `leave`.

    Raises DownloadsBusyError at once if none is free.
    """

    def __init__(self) -> None:
        if not _slots.acquire(blocking=False):
            raise DownloadsBusyError("Other files are being sent just now.")
        self._is_held = True

    def leave(self) -> None:
        """Release the slot. Idempotent."""
        if self._is_held:
            self._is_held = False
            _slots.release()


MAX_COMPUTED_ROWS = 50_000  # rows that Python can compute while a person waits
MAX_XLSX_ROWS = 10_000  # an Excel file cannot start before its last row is known


def estimated_rows(wanted: ExportRequest) -> int | None:
    """The estimate of PostgreSQL's planner; on SQLite a count up to the limit.

    None if there is no query to count.
    """
    query = _counted_query(wanted)
    if query is None:
        return None
    if connection.vendor == "postgresql":
        return _planner_rows(query)
    return query.order_by()[: settings.EXPORT_STREAM_ROWS + 1].count()


def needs_background(wanted: ExportRequest, estimate: int | None) -> bool:
    """Whether the file is too large to be produced while a person waits."""
    return (estimate or 0) > _row_limit(wanted)


def _row_limit(wanted: ExportRequest) -> int:
    at_most: int = settings.EXPORT_STREAM_ROWS
    if wanted.format == FileFormat.XLSX:
        return min(at_most, MAX_XLSX_ROWS)
    return at_most if isinstance(wanted.report, StoredReport) else min(at_most, MAX_COMPUTED_ROWS)


def _counted_query(wanted: ExportRequest) -> QuerySet[Any] | None:
    match wanted.report:
        case StoredReport() as report:
            return report.query(wanted.user, wanted.form)
        case ComputedReport(counted=counted) if counted is not None:
            return counted(wanted.user, wanted.form)
    return None


def _planner_rows(query: QuerySet[Any]) -> int:
    plan = json.loads(query.order_by().explain(format="json"))
    return int(plan[0]["Plan"]["Plan Rows"])
