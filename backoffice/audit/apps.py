from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The append-only log, its verification, and its checkpoints outside the database."""

    name = "backoffice.audit"
    label = "audit"

    def ready(self) -> None:
        """Check the configuration of checkpoints, so that a wrong address or key stops the start."""
        from backoffice.audit.checkpoints import check_configuration

        check_configuration()
