"""Exports and schedules as tests ask for them."""

from pathlib import Path
from typing import Any

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core.storage.files import EXPORTS, file_store
from backoffice.reports.exports import runner, services
from backoffice.reports.models import ExportJob, work_folder

WISH: dict[str, Any] = {
    "report": "audit-log",
    "filters": {},
    "columns": ["position", "actor", "action"],
    "format": "csv",
    "has_byte_order_mark": False,
    "time_zone": "Africa/Lagos",
    "estimate": 3,
}


def requested_export(person: User, **changes: Any) -> ExportJob:
    """An export that waits to be made."""
    return services.request_export(person, {**WISH, **changes})


def made(person: User, **changes: Any) -> ExportJob:
    """An export that was made."""
    job = requested_export(person, **changes)
    runner.run_export(job.pk)
    return now(job)


def now(job: ExportJob) -> ExportJob:
    """The same, as the database has it."""
    return ExportJob.objects.get(pk=job.pk)


def numbers(person: User) -> ExportJob:
    """An export of the report that the fixture `offer` makes."""
    return requested_export(person, report="numbers", columns=[])


def files() -> list[str]:
    """What lies in the folder of exports."""
    return sorted(path.name for path in work_folder().iterdir())


def path_of(job: ExportJob) -> Path:
    """Where its finished file lies, in the default store."""
    return Path(file_store(EXPORTS).path(job.stored_as))


def actions(job: ExportJob) -> list[str]:
    """The entries of the audit log about it, the oldest first."""
    return [
        entry.action
        for entry in Entry.objects.order_by("position")
        if entry.detail.get("export") == str(job.pk)
    ]
