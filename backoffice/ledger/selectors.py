"""Reads what the service says: balances, account holders, transactions. Keeps only the last answers."""

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.cache import cache
from django.utils import timezone
from pydantic import TypeAdapter

from backoffice.core.gateway import (
    PATIENCE_OF_A_CHECK,
    PATIENCE_OF_A_HINT,
    PATIENCE_OF_A_PAGE,
    PATIENCE_OF_AN_OPENING,
    gateway,
)
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.ledger.told import Question, Told
from payments_gateway import (
    BANKS,
    Account,
    AccountHolder,
    GatewayError,
    PaymentsGateway,
    TransactionPage,
    TransactionRecord,
)

_HOLDER_KEPT_SECONDS = 120
_RATE_KEPT_SECONDS = 300
_BANKS_FRESH_SECONDS = 3600
_BANKS_TRIED_SECONDS = 60
_FILTERED_BY = ("NGN", "USD")
OWN_ACCOUNTS = Question("accounts", TypeAdapter(list[Account]))
_CALLBACK_URL = Question("callback", TypeAdapter(str))
_PAGE = 100
_ACCOUNTS = 100  # on the first page, which is all that is read: the accounts that the service opened are few


@dataclass(frozen=True)
class Watermark:
    """What the service showed of one currency just before we sent: anything ours is newer than this.

    `lately` are its records of so long ago as was asked for, by its own clock: ours is none of them, however alike.
    """

    transaction_id: str
    balance: Decimal | None
    service_time: datetime | None
    lately: tuple[TransactionRecord, ...] = ()


NOTHING_SEEN = Watermark("", None, None)


@dataclass(frozen=True)
class KnownRate:
    """Units of one currency for one of another, and where it comes from.

    `reached` is the direction of the conversion that brought it, which may be the opposite one with another margin;
    None where the service told the rate itself. `at` is when, where that is known.
    """

    number: Decimal
    reached: tuple[str, str] | None
    at: datetime | None


def known_balances() -> list[Balance]:
    """The balances as last kept, by currency; empty before the first read."""
    return list(Balance.objects.all())


def snapshots_since(moment: datetime) -> list[BalanceSnapshot]:
    """The snapshots of every currency that began at that moment or later, newest first."""
    return list(BalanceSnapshot.objects.filter(slot__gte=moment))


def own_accounts_now() -> Told[list[Account]]:
    """The merchant's accounts, now or as last told."""
    return OWN_ACCOUNTS.told_now(own_accounts)


def known_own_accounts() -> Told[list[Account]]:
    """The same as last told, without asking."""
    return OWN_ACCOUNTS.last_told()


def callback_url_now() -> Told[str]:
    """The address that the service sends webhooks to, now or as last told; empty if none is set."""
    return _CALLBACK_URL.told_now(callback_url)


def known_callback_url() -> Told[str]:
    """The same as last told, without asking."""
    return _CALLBACK_URL.last_told()


def current_balance(currency: str, *, patience: float = PATIENCE_OF_A_PAGE) -> Decimal | None:
    """The balance the service tells now, or None if it names no such currency. Raises GatewayError."""
    balances = gateway(deadline=patience).balances.list(currency)
    found = [balance for balance in balances if balance.currency == currency]
    return found[0].amount if found else None


def account_holder(account_number: str, bank_code: str) -> AccountHolder:
    """Who holds this bank account (POST /bank/resolve), remembered for two minutes.

    Raises RejectedError if the service knows no such account, another GatewayError if it cannot tell now.
    """
    key = f"holder:{bank_code}:{account_number}"
    known: AccountHolder | None = cache.get(key)
    if known is None:
        known = gateway(deadline=PATIENCE_OF_A_CHECK).banks.resolve(
            account_number=account_number, bank_code=bank_code
        )
        cache.set(key, known, _HOLDER_KEPT_SECONDS)
    return known


def own_accounts(account_name: str | None = None, *, client: PaymentsGateway | None = None) -> list[Account]:
    """Accounts that the service opened for the merchant, all or those of one name (GET {base_url_v4}/account).

    Raises GatewayError. Without `client` it is asked with the patience of a page.
    """
    found = (client or gateway(deadline=PATIENCE_OF_A_PAGE)).accounts.list(
        account_name=account_name, page=1, per_page=_ACCOUNTS
    )
    return [account for account in found if account_name in {None, account.account_name}]


def own_account_numbers(
    account_name: str, currency: str, *, client: PaymentsGateway | None = None
) -> frozenset[str]:
    """The numbers of the merchant's accounts of this name in this currency. Raises GatewayError."""
    return frozenset(
        asset.address
        for account in own_accounts(account_name, client=client)
        for asset in account.assets
        if asset.address and asset.currency == currency
    )


def callback_url(*, patience: float = PATIENCE_OF_A_PAGE) -> str:
    """The address that the service sends webhooks to now; empty if none is set. Raises GatewayError."""
    return gateway(deadline=patience).callbacks.url()


def banks() -> Mapping[str, str]:
    """Code and name of each bank that money can be withdrawn to. Never fails.

    The service's own list, asked for once an hour, where the deployment says that it has one. While it cannot be
    had, it is asked for once a minute, by one page at a time, and the last list known stands in; our own, at worst.
    """
    if not gateway(deadline=PATIENCE_OF_AN_OPENING).extras.is_on("banks"):
        return BANKS
    known: Mapping[str, str] | None = cache.get("banks:known")
    is_fresh = known is not None and cache.get("banks:fresh", False)
    if not is_fresh and cache.add("banks:tried", True, _BANKS_TRIED_SECONDS):
        known = _listed_banks() or known
    return known or BANKS


def _listed_banks() -> Mapping[str, str] | None:
    """The service's list of banks now, remembered; None if it cannot be had or is empty."""
    try:
        listed = gateway(deadline=PATIENCE_OF_AN_OPENING).extras.banks()
    except GatewayError:
        return None  # the gateway has logged it
    if not listed:
        return None
    banks = {bank.code: bank.name for bank in listed}
    cache.set("banks:known", banks, None)
    cache.set("banks:fresh", True, _BANKS_FRESH_SECONDS)
    return banks


def last_rate(from_currency: str, to_currency: str) -> KnownRate | None:
    """The rate from the one currency into the other, as last known; None if it is not known now. Never fails.

    The service's own rates where the deployment says that it tells them, otherwise what the newest conversion brought.
    Remembered for some minutes, so that what was reviewed is what is prepared.
    """
    key = f"known-rate:{from_currency}:{to_currency}"
    known: KnownRate | None = cache.get(key)
    if known is None:
        try:
            known = _told_rate(from_currency, to_currency) or _reached_rate(from_currency, to_currency)
        except GatewayError:
            return None  # the gateway has logged it
        if known is not None:
            cache.set(key, known, _RATE_KEPT_SECONDS)
    return known


def _told_rate(from_currency: str, to_currency: str) -> KnownRate | None:
    extras = gateway(deadline=PATIENCE_OF_A_HINT).extras
    if not extras.is_on("rates"):
        return None
    told = extras.rates().get(f"{from_currency}{to_currency}")
    return KnownRate(_rate(told.rate), None, timezone.now()) if told and told.rate else None


def _reached_rate(from_currency: str, to_currency: str) -> KnownRate | None:
    """What the newest conversion in this direction brought; where there is none, the newest in the opposite one.

    The record of what was received tells both amounts.
    """
    records = gateway(deadline=PATIENCE_OF_A_HINT).transactions.page(type="conversion", per_page=20).records
    there, back = (from_currency, to_currency), (to_currency, from_currency)
    for pair in (there, back):
        for record in records:
            if record.from_amount and record.amount and (record.from_currency, record.currency) == pair:
                brought = record.amount / record.from_amount
                return KnownRate(_rate(brought if pair == there else 1 / brought), pair, record.created_at)
    return None


def _rate(number: Decimal) -> Decimal:
    return number.quantize(Decimal("1e-10"))


def watermark(currency: str, *, lately: timedelta = timedelta()) -> Watermark:
    """The newest transactions and the balance of a currency, right now. Raises GatewayError.

    Without a currency, for what moves no money, it is the newest transaction of all, and no balance.
    """
    newest = gateway().transactions.page(currency=_filter(currency), page=1, per_page=_PAGE)
    return Watermark(
        transaction_id=newest.records[0].transaction_id if newest.records else "",
        balance=current_balance(currency) if currency else None,
        service_time=newest.answered_at,
        lately=_lately(currency, newest, newest.answered_at - lately) if newest.answered_at else (),
    )


def _lately(currency: str, newest: TransactionPage, back_to: datetime) -> tuple[TransactionRecord, ...]:
    """The records since then, beginning with this page; further pages are read if it is full of them."""
    found = [record for record in newest.records if not record.created_at or record.created_at >= back_to]
    is_full = len(found) == len(newest.records) < newest.total  # the service may give fewer than asked for
    return tuple(recent_transactions(currency, back_to=back_to) if is_full else found)


def recent_transactions(currency: str, *, back_to: datetime) -> Iterator[TransactionRecord]:
    """The service's transactions, newest first, until a whole page of them is older. Raises GatewayError.

    Some older ones come along, because the list is not strictly in order; whoever asks looks at each one's own time.
    """
    older_in_a_row = 0
    for record in gateway().transactions.iterate(currency=_filter(currency), per_page=_PAGE):
        is_older = record.created_at is not None and record.created_at < back_to
        older_in_a_row = older_in_a_row + 1 if is_older else 0
        if older_in_a_row > _PAGE:
            return
        yield record


@dataclass(frozen=True)
class Listed:
    """The newest of the service's transactions. `is_whole` is False where no time was left to read as far as asked."""

    records: list[TransactionRecord]
    is_whole: bool


def transactions_since(currency: str, moment: datetime) -> Listed:
    """The service's transactions since then, newest first, within the patience of a page. Raises GatewayError."""
    until, found = time.monotonic() + PATIENCE_OF_A_PAGE, []
    for number in itertools.count(1):
        transactions = gateway(deadline=PATIENCE_OF_A_PAGE).transactions
        page = transactions.page(currency=_filter(currency), page=number, per_page=_PAGE)
        found += page.records
        is_older = bool(page.records) and all(
            record.created_at is not None and record.created_at < moment for record in page.records
        )
        if is_older or number >= page.pages or not page.records:
            return Listed(_since(found, moment), is_whole=True)
        if time.monotonic() > until:
            break
    return Listed(_since(found, moment), is_whole=False)


def _since(records: list[TransactionRecord], moment: datetime) -> list[TransactionRecord]:
    return [record for record in records if record.created_at is None or record.created_at >= moment]


def _filter(currency: str) -> str | None:
    """The currency, where the service can filter its transactions by it (specification, GET /transaction)."""
    return currency if currency in _FILTERED_BY else None
