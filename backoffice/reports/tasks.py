"""The doorbell's side of the exports. The database says what is to be made; `manage.py sweep` finds what is missed."""

from uuid import UUID

from celery import shared_task

from backoffice.core.context import calling
from backoffice.reports import services


@shared_task(name="reports.run_export", ignore_result=True, acks_late=False, max_retries=0)
def run_export(export_id: str) -> None:
    """Make one file, if it still waits for somebody."""
    with calling(request_id=f"export-{export_id[:8]}"):
        services.run_export(UUID(export_id))


@shared_task(name="reports.run_schedules", ignore_result=True, acks_late=False, max_retries=0)
def run_schedules() -> None:
    """Ask for what schedules want now, and tell people what is ready. `manage.py sweep` does the same."""
    with calling(request_id="schedules"):
        services.run_schedules()
        services.tell_recipients()
