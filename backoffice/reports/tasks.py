"""The Celery task of reports. The database determines what is due; the sweeper covers lost messages."""

from uuid import UUID

from celery import shared_task

from backoffice.core.web.request_context import call_context
from backoffice.reports.exports import runner


@shared_task(name="reports.run_export", ignore_result=True, acks_late=False, max_retries=0)
def run_export(export_id: str) -> None:
    """Run one export, if it is still waiting."""
    with call_context(request_id=f"export-{export_id[:8]}"):
        runner.run_export(UUID(export_id))
