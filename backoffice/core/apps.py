from django.apps import AppConfig


class CoreConfig(AppConfig):
    """What every application builds on, without a domain of its own."""

    name = "backoffice.core"
    label = "core"

    def ready(self) -> None:
        """Build the client now, without calling anybody: a wrong address, dialect or key stops the start."""
        from backoffice.core import encryption
        from backoffice.core.gateway import check_configuration

        encryption.check_encryption_keys()
        check_configuration()
