"""Django app config: makes `manage.py sandbox` available. The client itself does not need Django."""

from django.apps import AppConfig


class PaymentsGatewayConfig(AppConfig):
    name = "payments_gateway"
    verbose_name = "Payments gateway"
