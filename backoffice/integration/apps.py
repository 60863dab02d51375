from django.apps import AppConfig


class IntegrationConfig(AppConfig):
    """How this installation is tied to the service: its API keys, and their rotation."""

    name = "backoffice.integration"
    label = "integration"
