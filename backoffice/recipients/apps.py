"""The app of the register of recipients."""

from django.apps import AppConfig


class RecipientsConfig(AppConfig):
    name = "backoffice.recipients"
    default_auto_field = "django.db.models.BigAutoField"
