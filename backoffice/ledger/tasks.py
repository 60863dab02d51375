"""Celery tasks of the ledger.

They only read from the provider, so a lost or repeated message changes nothing.
"""

from celery import shared_task

from backoffice.core.web.request_context import call_context
from backoffice.ledger import balances
from backoffice.ledger.mirror import sync


@shared_task(name="ledger.keep_snapshots", ignore_result=True, acks_late=False, max_retries=0)
def take_snapshot() -> None:
    """Store a snapshot of the balances if one is due. `manage.py sweep` does the same without a broker."""
    with call_context(request_id="snapshots"):
        balances.take_due_snapshot()


@shared_task(name="ledger.keep_mirror", ignore_result=True, acks_late=False, max_retries=0)
def sync_mirror_if_due() -> None:
    """Run the sync if it is due. `manage.py sweep` does the same without a broker."""
    with call_context(request_id="keep-mirror"):
        sync.sync_if_due()


@shared_task(name=sync.SYNC_TASK, ignore_result=True, acks_late=False, max_retries=0)
def sync_mirror(_because: str) -> None:
    """Read the newest pages now, because something happened at the provider."""
    with call_context(request_id="mirror"):
        sync.sync_now()
