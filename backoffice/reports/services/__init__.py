"""What people and the sweeper do with exports and schedules."""

from backoffice.reports.services.mailing import tell_recipients
from backoffice.reports.services.requesting import (
    cancel_export,
    hand_out,
    remove_export,
    request_again,
    request_export,
)
from backoffice.reports.services.running import run_all_due, run_due, run_export
from backoffice.reports.services.scheduling import (
    change_schedule,
    create_schedule,
    pause_schedule,
    remove_schedule,
    resume_schedule,
    run_schedules,
)
from backoffice.reports.services.tidying import tidy_exports

__all__ = [
    "cancel_export",
    "change_schedule",
    "create_schedule",
    "hand_out",
    "pause_schedule",
    "remove_export",
    "remove_schedule",
    "request_again",
    "request_export",
    "resume_schedule",
    "run_all_due",
    "run_due",
    "run_export",
    "run_schedules",
    "tell_recipients",
    "tidy_exports",
]
