"""Schedules as tests want them."""

from datetime import datetime
from typing import Any

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.reports.exports import runner
from backoffice.reports.models import ExportJob, Schedule
from backoffice.reports.schedules import services

MEMBERS: dict[str, Any] = {
    "name": "Every morning",
    "report": "audit-log",
    "filters": {"group": ["export"]},
    "columns": ["position", "action"],
    "format": "csv",
    "has_byte_order_mark": False,
    "time_zone": "Africa/Lagos",
    "period": "yesterday",
    "frequency": "daily",
    "day": 1,
    "hour": 6,
}


def stored_schedule(owner: User, *recipients: User, **changes: Any) -> Schedule:
    """A schedule of the audit log, every morning at six in Lagos."""
    return services.create_schedule(owner, {**MEMBERS, **changes}, recipients or (owner,))


def is_due(schedule: Schedule, at: datetime) -> None:
    """Let it be due at that moment."""
    Schedule.objects.filter(pk=schedule.pk).update(next_at=at)


def now(schedule: Schedule) -> Schedule:
    """The same, as the database has it."""
    return Schedule.objects.get(pk=schedule.pk)


def ran(schedule: Schedule) -> ExportJob:
    """Its only export, made."""
    is_due(schedule, clock.now())
    services.run_due_schedules()
    runner.run_next_export()
    return ExportJob.objects.get()
