"""The ledger's side of the worker: reads only, so that losing or repeating a message changes nothing."""

from celery import shared_task

from backoffice.core.context import calling
from backoffice.ledger import services


@shared_task(name="ledger.keep_snapshots", ignore_result=True, acks_late=False, max_retries=0)
def keep_snapshots() -> None:
    """Keep a snapshot of the balances, if one is due. `manage.py sweep` does the same without a broker."""
    with calling(request_id="snapshots"):
        services.keep_snapshots()
