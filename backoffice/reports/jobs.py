"""The sweeper's jobs of reports: start what schedules want, make files, send messages, delete expired files."""

from backoffice.reports.exports.runner import run_all_exports, run_next_export
from backoffice.reports.exports.services import delete_expired_exports
from backoffice.reports.schedules.messages import send_due_messages
from backoffice.reports.schedules.services import run_due_schedules

JOBS = {
    "run_due_schedules": run_due_schedules,
    "run_next_export": run_next_export,
    "send_due_messages": send_due_messages,
    "delete_expired_exports": delete_expired_exports,
}
# A round makes one file; `manage.py sweep --once` makes all that wait.
JOBS_ONCE = JOBS | {"run_next_export": run_all_exports}
