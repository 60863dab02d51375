"""Exports and schedules as tests ask for them."""

from typing import Any

from backoffice.accounts.models import User
from backoffice.reports import services
from backoffice.reports.models import ExportJob

WISH: dict[str, Any] = {
    "report": "audit-log",
    "filters": {},
    "columns": ["position", "actor", "action"],
    "format": "csv",
    "has_mark": False,
    "time_zone": "Africa/Lagos",
    "estimate": 3,
}


def asked_for(person: User, **changes: Any) -> ExportJob:
    """An export that waits to be made."""
    return services.request_export(person, {**WISH, **changes})


def made(person: User, **changes: Any) -> ExportJob:
    """An export that was made."""
    job = asked_for(person, **changes)
    services.run_export(job.pk)
    return now(job)


def now(job: ExportJob) -> ExportJob:
    """The same, as the database has it."""
    return ExportJob.objects.get(pk=job.pk)
