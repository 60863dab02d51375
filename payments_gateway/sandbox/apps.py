"""Django app config of the books and the console, used only by the sandbox's own settings."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    name = "payments_gateway.sandbox"
    label = "sandbox"
