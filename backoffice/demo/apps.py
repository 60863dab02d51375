from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from payments_gateway.config import is_loopback


class DemoConfig(AppConfig):
    """The demo: seven people whose sign-in codes are shown. Installed only by `settings.DEMO`."""

    name = "backoffice.demo"
    label = "demo"

    def ready(self) -> None:
        """Refuse to start outside a sandbox on loopback, also with settings other than ours that install this
        app.
        """
        on_loopback = all(is_loopback(host) for host in settings.ALLOWED_HOSTS)
        if not (settings.DEMO and settings.ENVIRONMENT == "sandbox" and on_loopback):
            raise ImproperlyConfigured("backoffice.demo shows sign-in codes: it runs in the demo only")
