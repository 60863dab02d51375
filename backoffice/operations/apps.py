from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """The two-person workflow: prepared by one, countersigned by another, sent once, confirmed."""

    name = "backoffice.operations"
    label = "operations"
