"""The doorbell's side of the worker. Early acknowledgement, no retries, no arguments but an id."""

from uuid import UUID

from celery import shared_task

from backoffice.core.context import calling
from backoffice.operations import services


@shared_task(name="operations.send", ignore_result=True, acks_late=False, max_retries=0)
def send(operation_id: str) -> None:
    """Send one released operation, if it still is one."""
    with calling(request_id=f"send-{operation_id[:8]}"):
        services.send_operation(UUID(operation_id))


@shared_task(name="operations.sweep", ignore_result=True, acks_late=False, max_retries=0)
def sweep() -> None:
    """Do what is due. `manage.py sweep` does the same without a broker."""
    with calling(request_id="sweep"):
        for job in (services.tidy_up, services.send_due, services.close_due, services.watch_due):
            services.do_apart(job)


@shared_task(name="operations.reconcile", ignore_result=True, acks_late=False, max_retries=0)
def reconcile() -> None:
    """Hold operations and mirror against each other, if nobody has just now. `manage.py sweep` does the same."""
    with calling(request_id="reconcile"):
        services.reconcile_due()


@shared_task(name="operations.inspect", ignore_result=True, acks_late=False, max_retries=0)
def inspect() -> None:
    """Hold the database to what must always be true, if this minute nobody has. `manage.py sweep` does the same."""
    with calling(request_id="inspect"):
        services.inspect_due()
