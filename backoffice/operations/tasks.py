"""Celery tasks. They acknowledge early, are never retried, and take an id at most."""

from uuid import UUID

from celery import shared_task

from backoffice.core import isolation
from backoffice.core.web.request_context import call_context
from backoffice.operations import jobs
from backoffice.operations.delivery.send import send_operation
from backoffice.operations.monitoring import inspection
from backoffice.operations.outcome import schedule
from backoffice.operations.reconciliation import runner


@shared_task(name="operations.send", ignore_result=True, acks_late=False, max_retries=0)
def send(operation_id: str) -> None:
    """Send one released operation, if it is still released."""
    with call_context(request_id=f"send-{operation_id[:8]}"):
        send_operation(UUID(operation_id))


@shared_task(name="operations.sweep", ignore_result=True, acks_late=False, max_retries=0)
def sweep() -> None:
    """Run the jobs of sending, checking and expiring that are due. `manage.py sweep` does the same without a
    broker.
    """
    with call_context(request_id="sweep"):
        for job in (jobs.expire_due, jobs.send_due, schedule.check_due):
            isolation.run_isolated(job)


@shared_task(name="operations.reconcile", ignore_result=True, acks_late=False, max_retries=0)
def reconcile() -> None:
    """Reconcile operations with the mirror if a round is due. `manage.py sweep` does the same."""
    with call_context(request_id="reconcile"):
        runner.reconcile_due()


@shared_task(name="operations.inspect", ignore_result=True, acks_late=False, max_retries=0)
def inspect() -> None:
    """Check the invariants if an inspection is due. `manage.py sweep` does the same."""
    with call_context(request_id="inspect"):
        inspection.inspect_due()
