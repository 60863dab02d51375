"""Webhooks as a Django application of the simulation, with migrations of its own."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """Deliveries, their attempts, the signing keys, and the faults that were asked for."""

    name = "payments_gateway.sandbox.webhooks"
    label = "webhooks"
