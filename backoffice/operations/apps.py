from django.apps import AppConfig

from backoffice.audit import links


class OperationsConfig(AppConfig):
    """Prepared by one person, approved by another, sent at most once, and confirmed."""

    name = "backoffice.operations"
    label = "operations"

    def ready(self) -> None:
        from backoffice.operations.audit_texts import SENTENCES

        links.SENTENCES.update(SENTENCES)
