"""Bank accounts: the merchant's own, the holder of any other, and the banks that money can be withdrawn to."""

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
    100  # on the first page, which is all that is read: the accounts that the service opened are few
)


def refresh_own_accounts() -> CachedValue[list[Account]]:
    """The merchant's accounts, now or as last told."""
    return OWN_ACCOUNTS.told_now(fetch_own_accounts)


def cached_own_accounts() -> CachedValue[list[Account]]:
    """The same as last told, without asking."""
    return OWN_ACCOUNTS.last_told()


def resolve_account_holder(account_number: str, bank_code: str) -> AccountHolder:
    """Who holds this bank account (POST /bank/resolve), remembered for two minutes.

    Raises RejectedError if the service knows no such account, another GatewayError if it cannot tell now.
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
    """Accounts that the service opened for the merchant, all or those of one name (GET {base_url_v4}/account).

    Raises GatewayError. Without `client` it is asked with the patience of a page.
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
    """Code and name of each bank that money can be withdrawn to. Never fails.

    The service's own list, asked for once an hour, where the deployment says that it has one. While it cannot be
    had, it is asked for once a minute, by one page at a time, and the last list known stands in; our own, at worst.
    """
    if not gateway(deadline=PAGE_OPENING_TIMEOUT).extras.is_on("banks"):
        return BANKS
    known: Mapping[str, str] | None = cache.get("banks:known")
    is_fresh = known is not None and cache.get("banks:fresh", False)
    if not is_fresh and cache.add("banks:tried", True, _BANKS_RETRY_SECONDS):
        known = _fetch_banks() or known
    return known or BANKS


def _fetch_banks() -> Mapping[str, str] | None:
    """The service's list of banks now, remembered; None if it cannot be had or is empty."""
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
    """Own accounts with the text in their name, or of this number, as the service told them within a day."""
    told = OWN_ACCOUNTS.last_told().value or []
    return [
        OwnAccount(account.account_name, asset.currency, asset.address)
        for account in told
        for asset in account.assets
        if asset.address.lower() == account_number or text.lower() in account.account_name.lower()
    ]
