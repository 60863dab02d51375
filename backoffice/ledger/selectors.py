"""Reads what the service says: balances, account holders, transactions. Keeps only the last answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlencode

from django.core.cache import cache
from pydantic import TypeAdapter

from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.ledger.told import Question, Told
from payments_gateway import (
    BANKS,
    Account,
    AccountHolder,
    Duration,
    GatewayError,
    PaymentsGateway,
    TransactionRecord,
    TransactionSummary,
    TransactionType,
)

_HOLDER_KEPT_SECONDS = 120
_RATE_KEPT_SECONDS = 300
_BANKS_FRESH_SECONDS = 3600
_BANKS_TRIED_SECONDS = 60
_BANKS_PATIENCE_SECONDS = 1.0  # no form waits longer for a list that only saves typing
_FILTERED_BY = ("NGN", "USD")
_SUMMARY = TypeAdapter(TransactionSummary)
_OWN_ACCOUNTS = Question("accounts", TypeAdapter(list[Account]))
_CALLBACK_URL = Question("callback", TypeAdapter(str))
_PAGE = 100
_ACCOUNTS = 100  # on the first page, which is all that is read: the accounts that the service opened are few


@dataclass(frozen=True)
class Watermark:
    """What the service showed of one currency just before we sent: anything ours is newer than this."""

    transaction_id: str
    balance: Decimal | None
    service_time: datetime | None


NOTHING_SEEN = Watermark("", None, None)


@dataclass(frozen=True)
class Asked:
    """Which transactions to ask the service for; None filters nothing. Pages count from 1."""

    currency: str | None = None
    type: TransactionType | None = None
    duration: Duration | None = None
    page: int = 1
    per_page: int = 50

    @property
    def question(self) -> Question[TransactionSummary]:
        """The same for the same filters and page."""
        asked = urlencode({name: value or "" for name, value in vars(self).items()})
        return Question(f"transactions:{asked}", _SUMMARY)


def known_balances() -> list[Balance]:
    """The balances as last kept, by currency; empty before the first read."""
    return list(Balance.objects.all())


def snapshots_since(moment: datetime) -> list[BalanceSnapshot]:
    """The snapshots of every currency that began at that moment or later, newest first."""
    return list(BalanceSnapshot.objects.filter(slot__gte=moment))


def transactions_now(asked: Asked) -> Told[TransactionSummary]:
    """One page of the service's transactions with their totals, now or as last told (GET /transaction/summary)."""
    transactions = gateway(deadline=PATIENCE_OF_A_PAGE).transactions
    return asked.question.told_now(lambda: transactions.summary(**vars(asked)))


def known_transactions(asked: Asked) -> Told[TransactionSummary]:
    """The same as last told, without asking."""
    return asked.question.last_told()


def own_accounts_now() -> Told[list[Account]]:
    """The merchant's accounts, now or as last told."""
    return _OWN_ACCOUNTS.told_now(own_accounts)


def known_own_accounts() -> Told[list[Account]]:
    """The same as last told, without asking."""
    return _OWN_ACCOUNTS.last_told()


def callback_url_now() -> Told[str]:
    """The address that the service sends webhooks to, now or as last told; empty if none is set."""
    return _CALLBACK_URL.told_now(callback_url)


def known_callback_url() -> Told[str]:
    """The same as last told, without asking."""
    return _CALLBACK_URL.last_told()


def current_balance(currency: str) -> Decimal | None:
    """The balance the service tells now, or None if it names no such currency. Raises GatewayError."""
    balances = gateway(deadline=PATIENCE_OF_A_PAGE).balances.list(currency)
    found = [balance for balance in balances if balance.currency == currency]
    return found[0].amount if found else None


def account_holder(account_number: str, bank_code: str) -> AccountHolder:
    """Who holds this bank account (POST /bank/resolve), remembered for two minutes.

    Raises RejectedError if the service knows no such account, another GatewayError if it cannot tell now.
    """
    key = f"holder:{bank_code}:{account_number}"
    known: AccountHolder | None = cache.get(key)
    if known is None:
        known = gateway(deadline=PATIENCE_OF_A_PAGE).banks.resolve(
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


def callback_url() -> str:
    """The address that the service sends webhooks to now; empty if none is set. Raises GatewayError."""
    return gateway(deadline=PATIENCE_OF_A_PAGE).callbacks.url()


def banks() -> Mapping[str, str]:
    """Code and name of each bank that money can be withdrawn to. Never fails.

    The service's own list, asked for once an hour, where the deployment says that it has one. While it cannot be
    had, it is asked for once a minute, by one page at a time, and the last list known stands in; our own, at worst.
    """
    if not gateway(deadline=PATIENCE_OF_A_PAGE).extras.is_on("banks"):
        return BANKS
    known: Mapping[str, str] | None = cache.get("banks:known")
    is_fresh = known is not None and cache.get("banks:fresh", False)
    if not is_fresh and cache.add("banks:tried", True, _BANKS_TRIED_SECONDS):
        known = _listed_banks() or known
    return known or BANKS


def _listed_banks() -> Mapping[str, str] | None:
    """The service's list of banks now, remembered; None if it cannot be had or is empty."""
    try:
        listed = gateway(deadline=_BANKS_PATIENCE_SECONDS).extras.banks()
    except GatewayError:
        return None  # the gateway has logged it
    if not listed:
        return None
    banks = {bank.code: bank.name for bank in listed}
    cache.set("banks:known", banks, None)
    cache.set("banks:fresh", True, _BANKS_FRESH_SECONDS)
    return banks


def last_rate(from_currency: str, to_currency: str) -> Decimal | None:
    """Units of the one currency for one of the other, as last known; None if it is not known now. Never fails.

    The service's own rates where the deployment says that it tells them, otherwise what the newest conversion brought.
    Remembered for some minutes, so that what was reviewed is what is prepared.
    """
    key = f"rate:{from_currency}:{to_currency}"
    known: Decimal | None = cache.get(key)
    if known is None:
        try:
            known = _told_rate(from_currency, to_currency) or _reached_rate(from_currency, to_currency)
        except GatewayError:
            return None  # the gateway has logged it
        if known is not None:
            cache.set(key, known, _RATE_KEPT_SECONDS)
    return known


def _told_rate(from_currency: str, to_currency: str) -> Decimal | None:
    extras = gateway(deadline=PATIENCE_OF_A_PAGE).extras
    if not extras.is_on("rates"):
        return None
    told = extras.rates().get(f"{from_currency}{to_currency}")
    return _rate(told.rate) if told and told.rate else None


def _reached_rate(from_currency: str, to_currency: str) -> Decimal | None:
    """What the newest conversion brought, in either direction: the record of what was received tells both amounts."""
    records = gateway(deadline=PATIENCE_OF_A_PAGE).transactions.page(type="conversion", per_page=20).records
    for record in records:
        given, pair = record.from_amount, (record.from_currency, record.currency)
        if not given or not record.amount:
            continue
        if pair == (from_currency, to_currency):
            return _rate(record.amount / given)
        if pair == (to_currency, from_currency):
            return _rate(given / record.amount)
    return None


def _rate(number: Decimal) -> Decimal:
    return number.quantize(Decimal("1e-10"))


def watermark(currency: str) -> Watermark:
    """The newest transaction and the balance of a currency, right now. Raises GatewayError.

    Without a currency, for what moves no money, it is the newest transaction of all, and no balance.
    """
    newest = gateway().transactions.page(currency=_filter(currency), page=1, per_page=1)
    return Watermark(
        transaction_id=newest.records[0].transaction_id if newest.records else "",
        balance=current_balance(currency) if currency else None,
        service_time=newest.answered_at,
    )


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


def _filter(currency: str) -> str | None:
    """The currency, where the service can filter its transactions by it (specification, GET /transaction)."""
    return currency if currency in _FILTERED_BY else None
