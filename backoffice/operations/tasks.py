"""The doorbell's side of the worker. Early acknowledgement, no retries, no arguments but an id."""

from uuid import UUID

from celery import shared_task

from backoffice.operations import services


@shared_task(name="operations.send", ignore_result=True, acks_late=False, max_retries=0)
def send(operation_id: str) -> None:
    """Send one released operation, if it still is one."""
    services.send_operation(UUID(operation_id))


@shared_task(name="operations.sweep", ignore_result=True, acks_late=False, max_retries=0)
def sweep() -> None:
    """Do what is due. `manage.py sweep` does the same without a broker."""
    services.tidy_up()
    services.send_due()
    services.close_due()
