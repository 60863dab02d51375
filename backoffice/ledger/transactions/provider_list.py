"""Read the provider's transaction list live: the watermark before sending, recent transactions."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.ledger.balances import current_balance
from payments_gateway import TransactionPage, TransactionRecord

_FILTERABLE_CURRENCIES = ("NGN", "USD")


_PAGE_SIZE = 100


@dataclass(frozen=True)
class Watermark:
    """What the provider reported for one currency just before sending.

    A transaction that we cause is newer than this.

    `lately` holds its records of the requested time span, by the provider's clock. None of them is ours,
    however similar.
    """

    transaction_id: str
    balance: Decimal | None
    service_time: datetime | None
    lately: tuple[TransactionRecord, ...] = ()


EMPTY_WATERMARK = Watermark("", None, None)


def read_watermark(currency: str, *, lately: timedelta = timedelta()) -> Watermark:
    """The newest transactions and the balance of a currency now. Raises GatewayError.

    Without a currency, for operations that move no money, the newest transaction of all and no balance.
    """
    newest = gateway().transactions.page(currency=_currency_filter(currency), page=1, per_page=_PAGE_SIZE)
    return Watermark(
        transaction_id=newest.records[0].transaction_id if newest.records else "",
        balance=current_balance(currency) if currency else None,
        service_time=newest.answered_at,
        lately=_recent_since(currency, newest, newest.answered_at - lately) if newest.answered_at else (),
    )


def _recent_since(currency: str, newest: TransactionPage, back_to: datetime) -> tuple[TransactionRecord, ...]:
    """The records since `back_to`, from this page and, if all of it is that recent, further pages."""
    found = [record for record in newest.records if not record.created_at or record.created_at >= back_to]
    is_full = len(found) == len(newest.records) < newest.total  # the provider may return fewer than requested
    return tuple(recent_transactions(currency, back_to=back_to) if is_full else found)


def recent_transactions(currency: str, *, back_to: datetime) -> Iterator[TransactionRecord]:
    """The provider's transactions, newest first, until a whole page of them is older. Raises GatewayError.

    Includes some older ones, because the list is not strictly ordered; the caller must check each record's
    time.
    """
    older_in_a_row = 0
    for record in gateway().transactions.iterate(currency=_currency_filter(currency), per_page=_PAGE_SIZE):
        is_older = record.created_at is not None and record.created_at < back_to
        older_in_a_row = older_in_a_row + 1 if is_older else 0
        if older_in_a_row > _PAGE_SIZE:
            return
        yield record


@dataclass(frozen=True)
class ListedTransactions:
    """The provider's newest transactions.

    `is_whole` is False if time ran out before the requested moment was reached.
    """

    records: list[TransactionRecord]
    is_whole: bool


def transactions_since(currency: str, moment: datetime) -> ListedTransactions:
    """The provider's transactions since `moment`, newest first, within `PAGE_TIMEOUT`.

    Raises GatewayError.
    """
    until, found = time.monotonic() + PAGE_TIMEOUT, []
    for number in itertools.count(1):
        transactions = gateway(deadline=PAGE_TIMEOUT).transactions
        page = transactions.page(currency=_currency_filter(currency), page=number, per_page=_PAGE_SIZE)
        found += page.records
        is_older = bool(page.records) and all(
            record.created_at is not None and record.created_at < moment for record in page.records
        )
        if is_older or number >= page.pages or not page.records:
            return ListedTransactions(_not_before(found, moment), is_whole=True)
        if time.monotonic() > until:
            break
    return ListedTransactions(_not_before(found, moment), is_whole=False)


def _not_before(records: list[TransactionRecord], moment: datetime) -> list[TransactionRecord]:
    return [record for record in records if record.created_at is None or record.created_at >= moment]


def _currency_filter(currency: str) -> str | None:
    """The currency, if the provider can filter transactions by it (specification, GET /transaction)."""
    return currency if currency in _FILTERABLE_CURRENCIES else None
