"""The merchant's side of the simulation, as a Django application of the sandbox's own settings."""

from django.apps import AppConfig


class MerchantConfig(AppConfig):
    """API keys, bank accounts, verification (KYC) and the callback URL."""

    name = "payments_gateway.sandbox.merchant"
    label = "merchant"
