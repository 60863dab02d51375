"""The Celery task that sends. It acknowledges early, is never retried, and takes an id."""

from uuid import UUID

from celery import shared_task

from backoffice.core.web.request_context import call_context
from backoffice.operations.delivery.send import send_operation


@shared_task(name="operations.send", ignore_result=True, acks_late=False, max_retries=0)
def send(operation_id: str) -> None:
    """Send one released operation, if it is still released."""
    with call_context(request_id=f"send-{operation_id[:8]}"):
        send_operation(UUID(operation_id))
