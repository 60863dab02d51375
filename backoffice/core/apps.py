from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured


class CoreConfig(AppConfig):
    """Infrastructure that every other app uses. It holds no business rule."""

    name = "backoffice.core"
    label = "core"

    def ready(self) -> None:
        """Check the encryption keys and build the API client, without a request, so that a wrong address,
        profile or key stops the start.
        """
        from backoffice.core import encryption
        from backoffice.core.database import role as role  # importing it registers its check
        from backoffice.core.gateway import check_configuration
        from backoffice.core.management import setting_checks as setting_checks  # importing it registers them

        encryption.check_encryption_keys()
        try:
            check_configuration()
        except (ValueError, OSError) as exc:
            raise ImproperlyConfigured(f"A setting COUNTERSIGN_GATEWAY_… cannot be used: {exc}") from exc
