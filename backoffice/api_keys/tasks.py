"""Celery task that refreshes the list of API keys. It only reads, so a lost or repeated message changes nothing."""

from celery import shared_task

from backoffice.api_keys import key_list
from backoffice.core.web.request_context import call_context


@shared_task(name="api_keys.refresh", ignore_result=True, acks_late=False, max_retries=0)
def refresh_keys() -> None:
    """Refresh the list of keys, if it is due. `manage.py sweep` does the same without a broker."""
    with call_context(request_id="keep-keys"):
        key_list.refresh_keys_if_due()
