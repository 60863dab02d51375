from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """What the service announces by itself: kept, and taken as a hint to read it again."""

    name = "backoffice.webhooks"
    label = "webhooks"

    def ready(self) -> None:
        from backoffice.webhooks import checks as checks  # registered by being imported
