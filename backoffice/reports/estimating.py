"""About how many rows an export will have: enough to decide how it is made."""

import json
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from backoffice.reports.report import Report, StoredReport
from backoffice.reports.wanted import Format, Wanted

WORKED_OUT_ROWS = 50_000  # what this program can work out while somebody waits
XLSX_ROWS = 10_000  # an Excel file has no first byte before its last row


def estimated_rows(wanted: Wanted) -> int | None:
    """What PostgreSQL's planner expects; elsewhere a count that goes no further than it matters. None: nobody knows."""
    query = _query(wanted)
    if query is None:
        return None
    if connection.vendor == "postgresql":
        return _planned(query)
    return query.order_by()[: settings.EXPORT_STREAM_ROWS + 1].count()


def is_big(wanted: Wanted, estimate: int | None) -> bool:
    """Whether nobody should wait for it."""
    return (estimate or 0) > _limit(wanted)


def _limit(wanted: Wanted) -> int:
    at_most: int = settings.EXPORT_STREAM_ROWS
    if wanted.format == Format.XLSX:
        return min(at_most, XLSX_ROWS)
    return at_most if isinstance(wanted.report, StoredReport) else min(at_most, WORKED_OUT_ROWS)


def _query(wanted: Wanted) -> QuerySet[Any] | None:
    match wanted.report:
        case StoredReport() as report:
            return report.query(wanted.user, wanted.form)
        case Report(counted=counted) if counted is not None:
            return counted(wanted.user, wanted.form)
    return None


def _planned(query: QuerySet[Any]) -> int:
    plan = json.loads(query.order_by().explain(format="json"))
    return int(plan[0]["Plan"]["Plan Rows"])
