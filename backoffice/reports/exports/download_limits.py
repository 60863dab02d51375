"""Limits of files that are made while a person waits: how many at once, and how many rows before they go to the
background.
"""

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
    """One of them, until it is left. Raises BusyError at once where all are taken."""

    def __init__(self) -> None:
        if not _slots.acquire(blocking=False):
            raise DownloadsBusyError("Other files are being sent just now.")
        self._is_held = True

    def leave(self) -> None:
        """Give it back; once is enough."""
        if self._is_held:
            self._is_held = False
            _slots.release()


MAX_COMPUTED_ROWS = 50_000  # what this program can work out while somebody waits
MAX_XLSX_ROWS = 10_000  # an Excel file has no first byte before its last row


def estimated_rows(wanted: ExportRequest) -> int | None:
    """What PostgreSQL's planner expects; elsewhere a count that goes no further than it matters. None: nobody knows."""
    query = _counted_query(wanted)
    if query is None:
        return None
    if connection.vendor == "postgresql":
        return _planner_rows(query)
    return query.order_by()[: settings.EXPORT_STREAM_ROWS + 1].count()


def needs_background(wanted: ExportRequest, estimate: int | None) -> bool:
    """Whether nobody should wait for it."""
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
