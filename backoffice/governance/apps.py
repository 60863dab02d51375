"""The app of the Settings pages about people and policies."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "backoffice.governance"

    def ready(self) -> None:
        import backoffice.governance.checks  # noqa: F401 - registers the checks
