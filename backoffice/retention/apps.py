from django.apps import AppConfig


class RetentionConfig(AppConfig):
    """How long rows are kept, and archives of evidence."""

    name = "backoffice.retention"
    label = "retention"

    def ready(self) -> None:
        from backoffice.core.storage import retention
        from backoffice.retention.tables import TABLES

        retention.declare(TABLES)
