"""Looks in what the service told lately, without asking it: the merchant's own accounts."""

from dataclasses import dataclass

from backoffice.ledger.selectors import OWN_ACCOUNTS


@dataclass(frozen=True)
class OwnAccount:
    """One account of the merchant at a bank."""

    name: str
    currency: str
    number: str


def own_accounts_told(text: str, account_number: str) -> list[OwnAccount]:
    """Own accounts with the text in their name, or of this number, as the service told them within a day."""
    told = OWN_ACCOUNTS.last_told().value or []
    return [
        OwnAccount(account.account_name, asset.currency, asset.address)
        for account in told
        for asset in account.assets
        if asset.address.lower() == account_number or text.lower() in account.account_name.lower()
    ]
