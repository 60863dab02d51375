"""The Celery task of the ledger. It only reads from the provider, so a lost or repeated message changes nothing."""

from celery import shared_task

from backoffice.core.web.request_context import call_context
from backoffice.ledger.mirror import sync


@shared_task(name=sync.SYNC_TASK, ignore_result=True, acks_late=False, max_retries=0)
def sync_mirror(_row_id: str) -> None:
    """Read the newest pages now, because something happened at the provider."""
    with call_context(request_id="mirror"):
        sync.sync_now()
