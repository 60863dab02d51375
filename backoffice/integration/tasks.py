"""The worker's side of the list of keys: it only reads, so that losing or repeating a message changes nothing."""

from celery import shared_task

from backoffice.core.context import calling
from backoffice.integration import services


@shared_task(name="integration.keep_keys", ignore_result=True, acks_late=False, max_retries=0)
def keep_keys() -> None:
    """Keep the list of keys, if it is due. `manage.py sweep` does the same without a broker."""
    with calling(request_id="keep-keys"):
        services.keep_keys()
