"""Django app config of the sandbox's webhooks."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """Deliveries, their attempts, the signing keys, and the faults that were asked for."""

    name = "payments_gateway.sandbox.webhooks"
    label = "webhooks"
