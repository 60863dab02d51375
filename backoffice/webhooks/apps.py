from django.apps import AppConfig

from backoffice.webhooks import configuration as configuration  # importing it registers the checks


class WebhookReceiverConfig(AppConfig):
    """Webhook deliveries of the provider: stored, and used as a reason to read the provider again."""

    name = "backoffice.webhooks"
    label = "webhooks"
