"""Celery task that processes deliveries. It reads the provider, so a lost or repeated message changes nothing."""

from celery import shared_task

from backoffice.core.web.request_context import call_context
from backoffice.webhooks import processing
from backoffice.webhooks.processing import PROCESS_TASK


@shared_task(name=PROCESS_TASK, ignore_result=True, acks_late=False, max_retries=0)
def process_deliveries(_row_id: str = "") -> None:
    """Process due deliveries. `manage.py sweep` does the same without a broker."""
    with call_context(request_id="webhooks"):
        processing.process_due_deliveries()
