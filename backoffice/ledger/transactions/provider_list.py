"""Read the provider's transaction list live: the watermark before sending, and the transactions since a moment."""

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
    """What the service showed of one currency just before we sent: anything ours is newer than this.

    `lately` are its records of so long ago as was asked for, by its own clock: ours is none of them, however alike.
    """

    transaction_id: str
    balance: Decimal | None
    service_time: datetime | None
    lately: tuple[TransactionRecord, ...] = ()


EMPTY_WATERMARK = Watermark("", None, None)


def read_watermark(currency: str, *, lately: timedelta = timedelta()) -> Watermark:
    """The newest transactions and the balance of a currency, right now. Raises GatewayError.

    Without a currency, for what moves no money, it is the newest transaction of all, and no balance.
    """
    newest = gateway().transactions.page(currency=_currency_filter(currency), page=1, per_page=_PAGE_SIZE)
    return Watermark(
        transaction_id=newest.records[0].transaction_id if newest.records else "",
        balance=current_balance(currency) if currency else None,
        service_time=newest.answered_at,
        lately=_recent_since(currency, newest, newest.answered_at - lately) if newest.answered_at else (),
    )


def _recent_since(currency: str, newest: TransactionPage, back_to: datetime) -> tuple[TransactionRecord, ...]:
    """The records since then, beginning with this page; further pages are read if it is full of them."""
    found = [record for record in newest.records if not record.created_at or record.created_at >= back_to]
    is_full = len(found) == len(newest.records) < newest.total  # the service may give fewer than asked for
    return tuple(recent_transactions(currency, back_to=back_to) if is_full else found)


def recent_transactions(currency: str, *, back_to: datetime) -> Iterator[TransactionRecord]:
    """The service's transactions, newest first, until a whole page of them is older. Raises GatewayError.

    Some older ones come along, because the list is not strictly in order; whoever asks looks at each one's own time.
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
    """The newest of the service's transactions. `is_whole` is False where no time was left to read as far as asked."""

    records: list[TransactionRecord]
    is_whole: bool


def transactions_since(currency: str, moment: datetime) -> ListedTransactions:
    """The service's transactions since then, newest first, within the patience of a page. Raises GatewayError."""
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
    """The currency, where the service can filter its transactions by it (specification, GET /transaction)."""
    return currency if currency in _FILTERABLE_CURRENCIES else None
