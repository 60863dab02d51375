"""The app of the Settings pages about people and policies."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "backoffice.governance"

    def ready(self) -> None:
        from backoffice.governance import checks as checks  # importing it registers them
