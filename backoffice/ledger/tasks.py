"""The ledger's side of the worker: reads only, so that losing or repeating a message changes nothing."""

from celery import shared_task

from backoffice.core.context import calling
from backoffice.ledger import mirroring, services


@shared_task(name="ledger.keep_snapshots", ignore_result=True, acks_late=False, max_retries=0)
def keep_snapshots() -> None:
    """Keep a snapshot of the balances, if one is due. `manage.py sweep` does the same without a broker."""
    with calling(request_id="snapshots"):
        services.keep_snapshots()


@shared_task(name="ledger.keep_mirror", ignore_result=True, acks_late=False, max_retries=0)
def keep_mirror() -> None:
    """Read on in the service's list, if something is due. `manage.py sweep` does the same without a broker."""
    with calling(request_id="keep-mirror"):
        mirroring.mirror_due()


@shared_task(name=mirroring.TASK, ignore_result=True, acks_late=False, max_retries=0)
def mirror(_because: str) -> None:
    """The doorbell: something has happened at the service, so the newest pages are read now."""
    with calling(request_id="mirror"):
        mirroring.mirror_now()
