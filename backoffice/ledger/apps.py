from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """Balances, accounts and the mirror of the provider's transactions."""

    name = "backoffice.ledger"
    label = "ledger"
