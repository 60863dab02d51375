from django.apps import AppConfig


class CoreConfig(AppConfig):
    """What every application builds on, without a domain of its own."""

    name = "backoffice.core"
    label = "core"
