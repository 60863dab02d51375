"""Reads the list of keys now and then, so that the overview can warn of those that end."""

from celery import shared_task

from backoffice.core.context import calling
from backoffice.integration import services
from payments_gateway import GatewayError


@shared_task(name="integration.list_keys", ignore_result=True, acks_late=False, max_retries=0)
def list_keys() -> None:
    """Keep the list as the service gives it now; where it gives none, the last known one stays."""
    with calling(request_id="list-keys"):
        try:
            services.refresh_keys()
        except GatewayError:
            return  # the gateway has logged it
