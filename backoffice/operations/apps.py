from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """Operations: prepared by one person, approved by another, sent at most once, and confirmed."""

    name = "backoffice.operations"
    label = "operations"

    def ready(self) -> None:
        from backoffice.audit import models as audit
        from backoffice.operations.delivery import journal as journal  # importing it registers a check
        from backoffice.operations.models.evidence import AUDIT_SENTENCES

        audit.SENTENCES.update(AUDIT_SENTENCES)
