"""Django app config of the merchant's side of the sandbox."""

from django.apps import AppConfig


class MerchantConfig(AppConfig):
    name = "payments_gateway.sandbox.merchant"
    label = "merchant"
