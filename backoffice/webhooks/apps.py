from django.apps import AppConfig


class WebhookReceiverConfig(AppConfig):
    """What the service announces by itself: kept, and taken as a hint to read it again."""

    name = "backoffice.webhooks"
    label = "webhooks"

    def ready(self) -> None:
        from backoffice.webhooks import configuration as configuration  # registered by being imported
