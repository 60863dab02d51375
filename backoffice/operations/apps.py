from django.apps import AppConfig

from backoffice.audit import links


class OperationsConfig(AppConfig):
    """The two-person workflow: prepared by one, countersigned by another, sent once, confirmed."""

    name = "backoffice.operations"
    label = "operations"

    def ready(self) -> None:
        from backoffice.operations.audit_texts import SENTENCES

        links.SENTENCES.update(SENTENCES)
