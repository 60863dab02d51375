"""The worker's side: it reads the service, so that losing or repeating a message changes nothing."""

from celery import shared_task

from backoffice.core.context import calling
from backoffice.webhooks import services
from backoffice.webhooks.services.looking import TASK


@shared_task(name=TASK, ignore_result=True, acks_late=False, max_retries=0)
def look(_because: str = "") -> None:
    """Read the service again, if a delivery wants it. `manage.py sweep` does the same without a broker."""
    with calling(request_id="webhooks"):
        services.look_due()
