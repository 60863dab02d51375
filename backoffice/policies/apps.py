"""The app of approval policies."""

from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    name = "backoffice.policies"
    default_auto_field = "django.db.models.BigAutoField"
