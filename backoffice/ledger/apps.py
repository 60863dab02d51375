from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """What the service says of the merchant's money."""

    name = "backoffice.ledger"
    label = "ledger"
