"""The simulated merchant: KYC status, callback URL and bank accounts.

Created at the first start and on reset, with one API key (`API_KEY`).
"""

import secrets
from itertools import islice

from django.db.transaction import atomic

from payments_gateway.sandbox import API_KEY
from payments_gateway.sandbox.errors import BareRefusalError
from payments_gateway.sandbox.merchant import keys
from payments_gateway.sandbox.models import ApiKey, BankAccount, MerchantDetails, Scope


def kyc() -> bool:
    """Whether the merchant has completed KYC, which is required for opening a bank account."""
    return MerchantDetails.objects.get().kyc


def set_kyc(completed: bool) -> None:
    MerchantDetails.objects.update(kyc=completed)


def callback_url() -> str:
    """The URL for webhooks; empty if none was set. One small query."""
    return MerchantDetails.objects.get().callback_url


def set_callback_url(url: str) -> None:
    MerchantDetails.objects.update(callback_url=url)


_BANK_OF = {"NGN": "035", "USD": "023", "KES": "023"}
_ENDINGS_WITH_A_MEANING = ("0000", "88", "99")


@atomic(durable=True)
def open_account(name: str, *, printed_name: str, currency: str) -> BankAccount:
    """Open another account, even if one of that name exists.

    Raises BareRefusalError 400 without KYC (Errors of the specification).
    """
    if not kyc():
        raise BareRefusalError(400, "user has not completed kyc")
    return BankAccount.objects.create(
        name=name,
        printed_name=printed_name,
        currency=currency,
        account_number=_free_number(),
        bank_code=_BANK_OF[currency],
    )


def accounts_by_name(name: str | None, *, page: int, per_page: int) -> dict[str, list[BankAccount]]:
    """One page of names with their accounts, oldest first; only this name if it is given."""
    accounts = BankAccount.objects.order_by("id")
    named: dict[str, list[BankAccount]] = {}
    for account in accounts if name is None else accounts.filter(name=name):
        named.setdefault(account.name, []).append(account)
    first = (page - 1) * per_page
    return dict(islice(named.items(), first, first + per_page))


def own_account_holder(account_number: str, bank_code: str) -> str | None:
    """The name of one of the merchant's own accounts, in capitals as banks print it; None for others."""
    own = BankAccount.objects.filter(account_number=account_number, bank_code=bank_code).first()
    return own.printed_name.upper() if own else None


def _free_number() -> str:
    """An unused number of ten digits without a special meaning in the simulation."""
    number = ""
    while (
        not number
        or number.endswith(_ENDINGS_WITH_A_MEANING)
        or BankAccount.objects.filter(account_number=number).exists()
    ):
        number = f"{secrets.randbelow(10**10):010d}"
    return number


_FIRST_KEY_NAME = "first key"


def ensure_merchant() -> None:
    """Create the merchant unless it exists, inside the caller's transaction; set KYC to completed."""
    if MerchantDetails.objects.update(kyc=True) == 0:
        reset_merchant()


def reset_merchant() -> None:
    """Reset all data of the merchant, inside the caller's transaction."""
    for kind in (ApiKey, BankAccount, MerchantDetails):
        kind.objects.all().delete()
    MerchantDetails.objects.create()
    keys.store_key(API_KEY, _FIRST_KEY_NAME, Scope.MASTER, None)
