"""Where money is received and sent: the merchant's bank accounts and wallet addresses, the name on any other
bank account, and what the provider supports: banks, networks and minimum amounts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.utils.translation import gettext
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead, CachedValue, Value, failed_read_text
from backoffice.core.gateway import (
    FORM_CHECK_TIMEOUT,
    PAGE_OPENING_TIMEOUT,
    PAGE_TIMEOUT,
    gateway,
    provider_profile,
)
from payments_gateway import (
    BANKS,
    Account,
    AccountHolder,
    CredentialsError,
    GatewayError,
    PaymentsGateway,
    RateLimitedError,
    RejectedError,
    Wallet,
    WalletAddress,
)

_HOLDER_KEPT_FOR = timedelta(minutes=2)
_ACCOUNTS_PER_PAGE = (
    100  # of the first page, the only one read: the merchant has few accounts at the provider
)
_OWN_ACCOUNTS = CachedRead("accounts", TypeAdapter(list[Account]))


def _supported(key: str, values: TypeAdapter[Value]) -> CachedRead[Value]:
    """A read of what the provider supports: fresh for an hour, used for a month, retried a minute after a failure."""
    return CachedRead(
        key,
        values,
        keep_for=timedelta(days=30),
        fresh_for=timedelta(hours=1),
        retry_after=timedelta(minutes=1),
    )


_BANKS = _supported("banks", TypeAdapter(dict[str, str]))
_NETWORKS = _supported("networks", TypeAdapter(dict[str, list[str]]))
_MINIMUMS = _supported("minimums", TypeAdapter(dict[str, Decimal]))


def refresh_own_accounts() -> CachedValue[list[Account]]:
    """The merchant's accounts, read now, or as last reported if that fails."""
    return _OWN_ACCOUNTS.refresh(fetch_own_accounts)


def cached_own_accounts() -> CachedValue[list[Account]]:
    """The merchant's accounts as last reported, without a request."""
    return _OWN_ACCOUNTS.cached()


def resolve_account_holder(account_number: str, bank_code: str) -> AccountHolder:
    """The name of the holder of this bank account (POST /bank/resolve), cached for two minutes.

    Raises RejectedError if the provider finds no such account, another GatewayError if it cannot answer.
    """
    holder = CachedRead(
        f"holder:{bank_code}:{account_number}",
        TypeAdapter(AccountHolder),
        keep_for=_HOLDER_KEPT_FOR,
        fresh_for=_HOLDER_KEPT_FOR,
    )
    return holder.fetch(
        lambda: gateway(deadline=FORM_CHECK_TIMEOUT).banks.resolve(
            account_number=account_number, bank_code=bank_code
        )
    )


def unresolved_text(exc: GatewayError) -> str:
    """Why the holder of an account is not known: the provider's own words if it decided, otherwise what failed."""
    if isinstance(exc, RejectedError) and not isinstance(exc, (CredentialsError, RateLimitedError)):
        return gettext("The bank did not find this account: {reason}").format(reason=exc.message)
    return gettext("Account not checked. {problem}").format(problem=failed_read_text(exc))


def fetch_own_accounts(
    account_name: str | None = None, *, client: PaymentsGateway | None = None
) -> list[Account]:
    """The merchant's accounts at the provider, all or those of one name (GET {base_url_v4}/account).

    Those without a name are among them: the provider may list accounts by currency only. Raises GatewayError.
    Without `client`, the request uses `PAGE_TIMEOUT`.
    """
    found = (client or gateway(deadline=PAGE_TIMEOUT)).accounts.list(
        account_name=account_name, page=1, per_page=_ACCOUNTS_PER_PAGE
    )
    return [
        account for account in found if account_name is None or account.account_name in {"", account_name}
    ]


def account_numbers(accounts: Iterable[Account], currency: str) -> frozenset[str]:
    """The numbers of these accounts in this currency."""
    return frozenset(
        asset.address
        for account in accounts
        for asset in account.assets
        if asset.address and asset.currency == currency
    )


def banks() -> Mapping[str, str]:
    """Code and name of each bank that accepts withdrawals. Never fails.

    The provider's own list, read once an hour, if the deployment declares that it has one. While it cannot be
    read, one request a minute retries it, and the last list read is used, or the built-in list `BANKS`.
    """
    if "banks" not in provider_profile().capabilities:
        return BANKS
    return _BANKS.get(_fetch_banks).value or BANKS


def _fetch_banks() -> dict[str, str] | None:
    banks = gateway(deadline=PAGE_OPENING_TIMEOUT).extras.banks()
    return {bank.code: bank.name for bank in banks} or None


def transfer_networks(currency: str) -> list[str]:
    """The networks on which the provider sends this cryptocurrency. Never fails.

    The provider's own list, read like `banks`, or that of the provider profile.
    """
    profile = provider_profile()
    if "wallet_config" not in profile.capabilities:
        return list(profile.transfer_networks)
    networks = _NETWORKS.get(_fetch_networks).value or {}
    return networks.get(currency) or list(profile.transfer_networks)


def _fetch_networks() -> dict[str, list[str]] | None:
    options = gateway(deadline=PAGE_OPENING_TIMEOUT).extras.wallet_config()
    return {option.currency: option.networks for option in options if option.networks} or None


def minimum_amounts() -> Mapping[str, Decimal]:
    """The provider's minimum amount of each currency, read like `banks`; empty if none is known. Never fails."""
    return _MINIMUMS.get(_fetch_minimums).value or {} if _has_minimums() else {}


def cached_minimum_amounts() -> Mapping[str, Decimal]:
    """The same as last reported, without a request, for a page that makes two others on opening."""
    return _MINIMUMS.cached().value or {} if _has_minimums() else {}


def _has_minimums() -> bool:
    return "minimums" in provider_profile().capabilities


def _fetch_minimums() -> dict[str, Decimal] | None:
    minimums = gateway(deadline=PAGE_OPENING_TIMEOUT).extras.minimums()
    return {minimum.currency: minimum.amount for minimum in minimums if minimum.amount} or None


@dataclass(frozen=True)
class OwnAccount:
    """One account of the merchant at a bank."""

    name: str
    currency: str
    number: str


def search_own_accounts(text: str, account_number: str) -> list[OwnAccount]:
    """Own accounts with the text in their name, or with this number, in the list cached for a day."""
    accounts = _OWN_ACCOUNTS.cached().value or []
    return [
        OwnAccount(account.account_name, asset.currency, asset.address)
        for account in accounts
        for asset in account.assets
        if asset.address.lower() == account_number or text.lower() in account.account_name.lower()
    ]


_WALLET = CachedRead("wallet", TypeAdapter(Wallet))


def refresh_wallet() -> CachedValue[Wallet]:
    """The wallet with all its addresses (GET /wallet), read now, or as last reported if that fails."""
    return _WALLET.refresh(lambda: gateway(deadline=PAGE_TIMEOUT).wallets.get())


def cached_wallet() -> CachedValue[Wallet]:
    """The wallet as last reported, without a request."""
    return _WALLET.cached()


@dataclass(frozen=True)
class FilteredAddresses:
    """The addresses of one currency and network, or of all, and the available choices."""

    addresses: list[WalletAddress]
    currencies: list[str]
    networks: list[str]


def filter_addresses(wallet: Wallet | None, *, currency: str, network: str) -> FilteredAddresses:
    """The addresses that match. An empty filter matches all; an address without the value matches no other."""
    addresses = wallet.addresses if wallet else ()
    return FilteredAddresses(
        [
            one
            for one in addresses
            if currency in {"", one.currency} and network in {"", one.network} and one.address
        ],
        _sorted_texts(one.currency for one in addresses),
        _sorted_texts(one.network for one in addresses),
    )


def _sorted_texts(texts: Iterable[str]) -> list[str]:
    return sorted({text for text in texts if text})
