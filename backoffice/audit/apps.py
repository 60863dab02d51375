from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The append-only log of who did what, to what, when and from where."""

    name = "backoffice.audit"
    label = "audit"
