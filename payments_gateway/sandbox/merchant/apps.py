"""Django app config of the merchant's side of the sandbox."""

from django.apps import AppConfig


class MerchantConfig(AppConfig):
    """API keys, bank accounts, verification (KYC) and the callback URL."""

    name = "payments_gateway.sandbox.merchant"
    label = "merchant"
