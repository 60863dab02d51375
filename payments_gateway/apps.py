"""The Django face of the client: its management commands."""

from django.apps import AppConfig


class PaymentsGatewayConfig(AppConfig):
    """Makes `manage.py sandbox` known. The client itself needs no Django."""

    name = "payments_gateway"
    verbose_name = "Payments gateway"
