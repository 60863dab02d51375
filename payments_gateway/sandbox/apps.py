"""The simulation as a Django application of its own settings; the back office never installs it."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    """The books and the pages of the simulation."""

    name = "payments_gateway.sandbox"
    label = "sandbox"
