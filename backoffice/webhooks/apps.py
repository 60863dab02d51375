from django.apps import AppConfig


class WebhookReceiverConfig(AppConfig):
    """Webhook deliveries of the provider: stored, and used as a reason to read the provider again."""

    name = "backoffice.webhooks"
    label = "webhooks"

    def ready(self) -> None:
        from backoffice.webhooks import configuration as configuration  # importing it registers the checks
