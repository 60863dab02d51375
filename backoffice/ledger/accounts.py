"""Where money is received and sent: the merchant's bank accounts and wallet addresses, the name on any other
bank account, and what the provider supports: banks, networks and minimum amounts.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db.models import TextChoices
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead, CachedValue, Value, reads_together
from backoffice.core.gateway import (
    FORM_CHECK_TIMEOUT,
    PAGE_OPENING_TIMEOUT,
    PAGE_TIMEOUT,
    gateway,
    provider_profile,
)
from backoffice.core.leases import acquire_lease
from backoffice.core.web.formatting import code_sentence, country_name, stored_error
from payments_gateway import (
    BANKS,
    CURRENCIES,
    Account,
    AccountHolder,
    CredentialsError,
    GatewayError,
    NotFoundError,
    NotSentError,
    OutcomeUnknownError,
    PaymentsGateway,
    RateLimitedError,
    RejectedError,
    SupportedCurrency,
    Wallet,
    WalletAddress,
)

_NO_SUCCESS = 300  # HTTP statuses from here on report an error; below it, the error's text gives the cause
_HOLDER_KEPT_FOR = timedelta(days=1)
_HOLDER_FRESH_FOR_FORMS = timedelta(minutes=2)
_HOLDERS_UNREADABLE = "holders-unreadable"
_HOLDERS_RETRY_SECONDS = 60
# Of the first page, the only one read: the merchant has few accounts at the provider.
_ACCOUNTS_PER_PAGE = 100
_LISTS_EVERY = timedelta(minutes=20)  # well within the hour for which a list is fresh
_HOLDER = TypeAdapter(AccountHolder)
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
_CURRENCIES = _supported("currencies", TypeAdapter(list[SupportedCurrency]))


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
    return _read_holder(account_number, bank_code, _HOLDER_FRESH_FOR_FORMS)


def accounts_together(accounts: Iterable[tuple[str, str]] = ()) -> AbstractContextManager[None]:
    """Within the block, the holders of these accounts, given by number and bank code, and what the provider supports
    are read from the database once (`reads_together`).
    """
    holders = [_holder_read(number, bank, _HOLDER_FRESH_FOR_FORMS) for number, bank in accounts]
    return reads_together([*holders, _BANKS, _MINIMUMS])


@dataclass(frozen=True)
class HolderToday:
    """The holder of a bank account as read within a day; without a name, the bank found no such account.

    `cause` says why it cannot be read now (`unresolved_cause`); usually empty.
    """

    name: str = ""
    cause: Mapping[str, str] = field(default_factory=dict)


def holder_today(account_number: str, bank_code: str) -> HolderToday:
    """The holder as read at most a day ago, by a form or before a payment; otherwise read now. Raises GatewayError."""
    try:
        return HolderToday(_read_holder(account_number, bank_code, _HOLDER_KEPT_FOR).account_name)
    except NotFoundError:
        return HolderToday()


def holder_if_readable(account_number: str, bank_code: str) -> HolderToday:
    """The same, with a `cause` in place of an error.

    After a read that failed, this process makes no other for a minute, so that a provider that cannot answer delays
    one payment of many and not each of them.
    """
    failed: Mapping[str, str] | None = cache.get(_HOLDERS_UNREADABLE)
    if failed:
        known = _holder_read(account_number, bank_code, _HOLDER_KEPT_FOR).cached().value
        return HolderToday(known.account_name) if known else HolderToday(cause=failed)
    try:
        return holder_today(account_number, bank_code)
    except GatewayError as exc:
        cause = unresolved_cause(exc)
        if cause["code"] != UnresolvedCause.REFUSED:
            cache.set(_HOLDERS_UNREADABLE, cause, _HOLDERS_RETRY_SECONDS)
        return HolderToday(cause=cause)


def _holder_read(account_number: str, bank_code: str, fresh_for: timedelta) -> CachedRead[AccountHolder]:
    return CachedRead(
        f"holder:{bank_code}:{account_number}",
        _HOLDER,
        keep_for=_HOLDER_KEPT_FOR,
        fresh_for=fresh_for,
    )


def _read_holder(account_number: str, bank_code: str, fresh_for: timedelta) -> AccountHolder:
    return _holder_read(account_number, bank_code, fresh_for).fetch(
        lambda: gateway(deadline=FORM_CHECK_TIMEOUT).banks.resolve(
            account_number=account_number, bank_code=bank_code
        )
    )


def holder_details(holder: AccountHolder) -> list[tuple[str, str]]:
    """Label and text of what the provider answered besides the name, as far as it did."""
    bank = " · ".join(filter(None, (holder.bank_name, holder.bank_code)))
    answer = " ".join(filter(None, (holder.response_code, holder.response_message)))
    details = (
        (gettext("Bank"), bank),
        (gettext("Country"), country_name(holder.country)),
        (gettext("Currency"), holder.currency),
        (gettext("Phone number"), holder.phone_number),
        (gettext("Provider's response"), answer),
        (gettext("Provider's reference"), holder.unique_reference or holder.internal_reference),
    )
    return [(label, text) for label, text in details if text]


class UnresolvedCause(TextChoices):
    """Why the holder of a bank account is not known. The label is the sentence, with its parameters in braces."""

    NO_ACCOUNT = "no_account", _("The bank did not find this account: {reason}")
    REFUSED = "refused", _("The provider refused to check this account: {reason}")
    CREDENTIALS = (
        "credentials",
        _("The provider refuses the API key. Ask an administrator to check it."),
    )
    RATE_LIMITED = "rate_limited", _("The provider accepts no more requests for now: {reason}")
    PROVIDER_ERROR = "provider_error", _("The provider responded with an error (HTTP {status}).")
    NOT_REACHED = "not_reached", _("The provider cannot be reached.")
    NO_RESPONSE = "no_response", _("The provider's response did not arrive completely and in time.")
    UNREADABLE = "unreadable", "{error}"


_LONGEST_REASON = 300


def unresolved_cause(exc: GatewayError) -> dict[str, str]:
    """An `UnresolvedCause` under `code`, and its parameters beside it, as stored in JSON.

    A rejection has the provider's own words. What changes from request to request is not among the parameters.
    """
    match exc:
        case CredentialsError():
            return {"code": UnresolvedCause.CREDENTIALS.value}
        case RejectedError():
            codes = {
                NotFoundError: UnresolvedCause.NO_ACCOUNT,
                RateLimitedError: UnresolvedCause.RATE_LIMITED,
            }
            code = codes.get(type(exc), UnresolvedCause.REFUSED)
            return {"code": code.value, "reason": exc.message[:_LONGEST_REASON]}
        case GatewayError(status=int(status)) if status >= _NO_SUCCESS:
            return {"code": UnresolvedCause.PROVIDER_ERROR.value, "status": str(status)}
        case GatewayError(__cause__=NotSentError()):
            return {"code": UnresolvedCause.NOT_REACHED.value}
        case GatewayError(__cause__=OutcomeUnknownError()):
            return {"code": UnresolvedCause.NO_RESPONSE.value}
    return {"code": UnresolvedCause.UNREADABLE.value, **stored_error(exc, limit=_LONGEST_REASON)}


_CAUSE_KEPT_FOR = timedelta(minutes=10)


def reviewed_cause(exc: GatewayError, *, submission: UUID | None, account: str) -> dict[str, str]:
    """The `unresolved_cause` that the same form met first for this account, for ten minutes.

    A provider may fail in another way each time. If the content changed with it, no review could be submitted. Only
    a refusal replaces a failure, since the approver must see it.
    """
    cause = unresolved_cause(exc)
    if submission is None:
        return cause
    kept = CachedRead(
        f"unresolved:{submission}:{account}",
        TypeAdapter(dict[str, str]),
        keep_for=_CAUSE_KEPT_FOR,
        fresh_for=_CAUSE_KEPT_FOR,
    )
    first = kept.cached().value
    if first and (cause["code"] != UnresolvedCause.REFUSED or first["code"] == UnresolvedCause.REFUSED):
        return first
    kept.refresh(lambda: cause)
    return cause


def unresolved_sentence(cause: Mapping[str, str]) -> str:
    """The cause in whole sentences. The provider's words often have no full stop."""
    text = code_sentence(UnresolvedCause, cause)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def unresolved_text(exc: GatewayError) -> str:
    """Why the holder of an account is not known, as a whole sentence for a form."""
    cause = unresolved_cause(exc)
    if cause["code"] == UnresolvedCause.NO_ACCOUNT:
        return unresolved_sentence(cause)
    return gettext("Account not checked. {problem}").format(problem=unresolved_sentence(cause))


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


def bank_code_of(text: str) -> str:
    """The code of the bank that a person or a file names: by its code, also without the leading zeros that a
    spreadsheet removes, or by its whole name. The text itself if that is no bank, or several.
    """
    listed = banks()
    named, number = text.casefold(), text.lstrip("0")
    found = [
        code
        for code, name in listed.items()
        if name.casefold() == named or (number and code.lstrip("0") == number)
    ]
    return found[0] if text not in listed and len(found) == 1 else text


def _fetch_banks(deadline: float = PAGE_OPENING_TIMEOUT) -> dict[str, str] | None:
    banks = gateway(deadline=deadline).extras.banks()
    return {bank.code: bank.name for bank in banks} or None


def refresh_lists_due() -> int:
    """Read again what the provider supports: banks, networks, minimum amounts and currencies, as far as the profile
    says that it has such lists. Returns how many were read.

    A job of the sweeper, so that no form waits for them when it is opened. Never fails.
    """
    lists = [each for name, each in _LISTS.items() if name in provider_profile().capabilities]
    if not lists or not acquire_lease("provider-lists", _LISTS_EVERY):
        return 0
    return sum(not cached.refresh(partial(fetch, PAGE_TIMEOUT)).error for cached, fetch in lists)


def transfer_networks(currency: str) -> Mapping[str, list[str]]:
    """The cryptocurrencies that can be sent, this one first, each with its networks. Never fails.

    The provider's own list, read like `banks`. Without it, this currency with the networks of the provider profile.
    """
    wallets = supported_wallets()
    own = wallets.get(currency) or list(provider_profile().transfer_networks)
    return {currency: own, **{code: each for code, each in wallets.items() if code not in CURRENCIES}}


def supported_wallets() -> Mapping[str, list[str]]:
    """The cryptocurrencies of wallets, each with its networks (GET /wallet/supported/config), read like `banks`.

    Empty if the provider has no such list. Never fails.
    """
    return _NETWORKS.get(_fetch_networks).value or {} if _has_wallet_config() else {}


def cached_supported_wallets() -> Mapping[str, list[str]]:
    """The same as last reported, without a request."""
    return _NETWORKS.cached().value or {} if _has_wallet_config() else {}


def _has_wallet_config() -> bool:
    return "wallet_config" in provider_profile().capabilities


def known_currencies() -> set[str]:
    """The codes of all currencies that the provider has, as last reported, without a request."""
    listed = [one.code for one in _CURRENCIES.cached().value or []]
    return {*CURRENCIES, *cached_supported_wallets(), *listed}


def known_networks() -> set[str]:
    """The networks of all cryptocurrencies, as last reported and in the provider profile, without a request."""
    wallets = cached_supported_wallets().values()
    return {*provider_profile().transfer_networks, *chain.from_iterable(wallets)}


def _fetch_networks(deadline: float = PAGE_OPENING_TIMEOUT) -> dict[str, list[str]] | None:
    options = gateway(deadline=deadline).extras.wallet_config()
    return {option.currency: option.networks for option in options if option.networks} or None


def minimum_amounts() -> Mapping[str, Decimal]:
    """The provider's minimum amount of each currency, read like `banks`; empty if none is known. Never fails."""
    return _MINIMUMS.get(_fetch_minimums).value or {} if _has_minimums() else {}


def cached_minimum_amounts() -> Mapping[str, Decimal]:
    """The same as last reported, without a request, for a page that makes two others on opening."""
    return _MINIMUMS.cached().value or {} if _has_minimums() else {}


def _has_minimums() -> bool:
    return "minimums" in provider_profile().capabilities


def _fetch_minimums(deadline: float = PAGE_OPENING_TIMEOUT) -> dict[str, Decimal] | None:
    minimums = gateway(deadline=deadline).extras.minimums()
    return {minimum.currency: minimum.amount for minimum in minimums if minimum.amount} or None


def supported_currencies() -> CachedValue[list[SupportedCurrency]] | None:
    """The currencies that the provider supports (GET /currency/supported), read like `banks`.

    None if the provider has no such list. Never fails.
    """
    return _CURRENCIES.get(_fetch_currencies) if _has_currencies() else None


def cached_supported_currencies() -> CachedValue[list[SupportedCurrency]] | None:
    """The same as last reported, without a request."""
    return _CURRENCIES.cached() if _has_currencies() else None


def _has_currencies() -> bool:
    return "currencies" in provider_profile().capabilities


def _fetch_currencies(deadline: float = PAGE_OPENING_TIMEOUT) -> list[SupportedCurrency]:
    return gateway(deadline=deadline).extras.currencies()


_LISTS: Mapping[str, tuple[CachedRead[Any], Callable[[float], Any]]] = {
    "banks": (_BANKS, _fetch_banks),
    "wallet_config": (_NETWORKS, _fetch_networks),
    "minimums": (_MINIMUMS, _fetch_minimums),
    "currencies": (_CURRENCIES, _fetch_currencies),
}


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
class WalletSelection:
    """The wallet as reported, its addresses of one currency and network, or of all, and the available choices."""

    cached: CachedValue[Wallet]
    addresses: list[WalletAddress]
    currencies: list[str]
    networks: list[str]


def refresh_selection(currency: str, network: str) -> WalletSelection:
    """The addresses of this currency and network, read now; an empty filter selects all.

    The provider may list only the addresses that were created. For a supported currency or network without one,
    the wallet is read once more with this filter.
    """
    return _selection(refresh_wallet(), supported_wallets(), currency, network, CachedRead.refresh)


def cached_selection(currency: str, network: str) -> WalletSelection:
    """The same as last reported, without a request."""
    supported = cached_supported_wallets()
    return _selection(cached_wallet(), supported, currency, network, lambda read, _fetch: read.cached())


def select_addresses(currency: str, network: str) -> list[WalletAddress]:
    """The addresses of the same selection, without the cache. Raises GatewayError."""
    addresses = _filtered(gateway().wallets.get(), currency, network)
    if addresses or not _is_supported(supported_wallets(), currency, network):
        return addresses
    return _filtered(_fetch_wallet(gateway(), currency, network), currency, network)


def _selection(
    whole: CachedValue[Wallet],
    supported: Mapping[str, list[str]],
    currency: str,
    network: str,
    read_filtered: Callable[[CachedRead[Wallet], Callable[[], Wallet]], CachedValue[Wallet]],
) -> WalletSelection:
    cached = whole
    if (
        not whole.error
        and not _filtered(whole.value, currency, network)
        and _is_supported(supported, currency, network)
    ):
        cached = read_filtered(
            CachedRead(f"wallet:{currency}:{network}", TypeAdapter(Wallet)),
            lambda: _fetch_wallet(gateway(deadline=PAGE_TIMEOUT), currency, network),
        )
    listed = [*_filtered(whole.value, "", ""), *_filtered(cached.value, "", "")]
    return WalletSelection(
        cached,
        _filtered(cached.value, currency, network),
        _sorted_texts([*(one.currency for one in listed), *supported]),
        _sorted_texts([*(one.network for one in listed), *chain.from_iterable(supported.values())]),
    )


def _is_supported(supported: Mapping[str, list[str]], currency: str, network: str) -> bool:
    """Whether the provider has wallets of this currency and network; False for no filter at all."""
    networks = [supported.get(currency, [])] if currency else supported.values()
    return any(network in {"", *each} for each in networks if each) and bool(currency or network)


def _fetch_wallet(client: PaymentsGateway, currency: str, network: str) -> Wallet:
    return client.wallets.get(currency=currency or None, network=network or None)


def _filtered(wallet: Wallet | None, currency: str, network: str) -> list[WalletAddress]:
    """The addresses that match. An empty filter matches all; an address without the value matches no other."""
    return [
        one
        for one in (wallet.addresses if wallet else ())
        if currency in {"", one.currency} and network in {"", one.network} and one.address
    ]


def _sorted_texts(texts: Iterable[str]) -> list[str]:
    return sorted({text for text in texts if text})
