"""Django app config of the sandbox's webhooks."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "payments_gateway.sandbox.webhooks"
    label = "webhooks"
