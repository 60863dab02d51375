"""Bank accounts: the merchant's own, the name on any other account, and the banks that accept withdrawals."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.core.cache import cache
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead, CachedValue
from backoffice.core.gateway import FORM_CHECK_TIMEOUT, PAGE_OPENING_TIMEOUT, PAGE_TIMEOUT, gateway
from payments_gateway import BANKS, Account, AccountHolder, GatewayError, PaymentsGateway

_HOLDER_KEPT_SECONDS = 120


_BANKS_FRESH_SECONDS = 3600
_BANKS_RETRY_SECONDS = 60


OWN_ACCOUNTS = CachedRead("accounts", TypeAdapter(list[Account]))


_ACCOUNTS_PER_PAGE = (
    100  # of the first page, the only one read: the merchant has few accounts at the provider
)


def refresh_own_accounts() -> CachedValue[list[Account]]:
    """The merchant's accounts, read now, or as last reported if that fails."""
    return OWN_ACCOUNTS.told_now(fetch_own_accounts)


def cached_own_accounts() -> CachedValue[list[Account]]:
    """The merchant's accounts as last reported, without a request."""
    return OWN_ACCOUNTS.last_told()


def resolve_account_holder(account_number: str, bank_code: str) -> AccountHolder:
    """The name of the holder of this bank account (POST /bank/resolve), cached for two minutes.

    Raises RejectedError if the provider finds no such account, another GatewayError if it cannot answer.
    """
    key = f"holder:{bank_code}:{account_number}"
    known: AccountHolder | None = cache.get(key)
    if known is None:
        known = gateway(deadline=FORM_CHECK_TIMEOUT).banks.resolve(
            account_number=account_number, bank_code=bank_code
        )
        cache.set(key, known, _HOLDER_KEPT_SECONDS)
    return known


def fetch_own_accounts(
    account_name: str | None = None, *, client: PaymentsGateway | None = None
) -> list[Account]:
    """The merchant's accounts at the provider, all or those of one name (GET {base_url_v4}/account).

    Raises GatewayError. Without `client`, the request uses `PAGE_TIMEOUT`.
    """
    found = (client or gateway(deadline=PAGE_TIMEOUT)).accounts.list(
        account_name=account_name, page=1, per_page=_ACCOUNTS_PER_PAGE
    )
    return [account for account in found if account_name in {None, account.account_name}]


def fetch_own_account_numbers(
    account_name: str, currency: str, *, client: PaymentsGateway | None = None
) -> frozenset[str]:
    """The numbers of the merchant's accounts of this name in this currency. Raises GatewayError."""
    return frozenset(
        asset.address
        for account in fetch_own_accounts(account_name, client=client)
        for asset in account.assets
        if asset.address and asset.currency == currency
    )


def banks() -> Mapping[str, str]:
    """Code and name of each bank that accepts withdrawals. Never fails.

    The provider's own list, read once an hour, if the deployment declares that it has one. While it cannot be
    read, one request a minute retries it, and the last list read is used, or the built-in list `BANKS`.
    """
    if not gateway(deadline=PAGE_OPENING_TIMEOUT).extras.is_on("banks"):
        return BANKS
    known: Mapping[str, str] | None = cache.get("banks:known")
    is_fresh = known is not None and cache.get("banks:fresh", False)
    if not is_fresh and cache.add("banks:tried", True, _BANKS_RETRY_SECONDS):
        known = _fetch_banks() or known
    return known or BANKS


def _fetch_banks() -> Mapping[str, str] | None:
    """Read and cache the provider's list of banks; None if it cannot be read or is empty."""
    try:
        listed = gateway(deadline=PAGE_OPENING_TIMEOUT).extras.banks()
    except GatewayError:
        return None  # the gateway has logged it
    if not listed:
        return None
    banks = {bank.code: bank.name for bank in listed}
    cache.set("banks:known", banks, None)
    cache.set("banks:fresh", True, _BANKS_FRESH_SECONDS)
    return banks


@dataclass(frozen=True)
class OwnAccount:
    """One account of the merchant at a bank."""

    name: str
    currency: str
    number: str


def search_own_accounts(text: str, account_number: str) -> list[OwnAccount]:
    """Own accounts with the text in their name, or with this number, in the list cached for a day."""
    told = OWN_ACCOUNTS.last_told().value or []
    return [
        OwnAccount(account.account_name, asset.currency, asset.address)
        for account in told
        for asset in account.assets
        if asset.address.lower() == account_number or text.lower() in account.account_name.lower()
    ]
