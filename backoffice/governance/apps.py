"""The app of the Settings pages about people and policies."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "backoffice.governance"
