from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from payments_gateway.config import is_loopback


class DemoConfig(AppConfig):
    """Six people whose sign-in codes are on show. Installed by `settings.DEMO` and by nothing else."""

    name = "backoffice.demo"
    label = "demo"

    def ready(self) -> None:
        """The settings refuse to start a demo outside a sandbox on loopback; this refuses once more, for
        settings of another making that list the application.
        """
        on_loopback = all(is_loopback(host) for host in settings.ALLOWED_HOSTS)
        if not (settings.DEMO and settings.ENVIRONMENT == "sandbox" and on_loopback):
            raise ImproperlyConfigured("backoffice.demo shows sign-in codes: it runs in the demo only")
