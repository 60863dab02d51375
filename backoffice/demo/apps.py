from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class DemoConfig(AppConfig):
    """Six people whose sign-in codes are on show. Installed by `settings.DEMO` and by nothing else."""

    name = "backoffice.demo"
    label = "demo"

    def ready(self) -> None:
        """The settings refuse to start a demo outside a sandbox on loopback; this refuses once more, for
        settings of another making that list the application.
        """
        loopback = {"localhost", "127.0.0.1", "::1", "[::1]"}
        if (
            not settings.DEMO
            or settings.ENVIRONMENT != "sandbox"
            or not set(settings.ALLOWED_HOSTS) <= loopback
        ):
            raise ImproperlyConfigured("backoffice.demo shows sign-in codes: it runs in the demo only")
