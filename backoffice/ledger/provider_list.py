"""The one reader of the provider's transaction list: page by page, newest first, while the list changes.

The mirror reads pages, in steps that can be resumed. Sending takes a watermark. Matching reads until two
passes agree. Screens read what a page may wait for.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain

from backoffice.core import clock
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.ledger.balances import current_balance
from payments_gateway import PageReader, TransactionPage, TransactionRecord

PAGE_SIZE = 100
"""The specification gives no maximum page size; the provider is known to accept this one."""
MAX_PASSES = 4  # how often a list that changes meanwhile is read
_FILTERABLE_CURRENCIES = ("NGN", "USD")


class UnstableListError(Exception):
    """No two consecutive passes through the provider's list agreed, so it proves nothing now."""


@dataclass(frozen=True)
class ListPosition:
    """The next page to read, and the total that the provider reported when the page before it was read."""

    page: int = 1
    total: int = 0


@dataclass(frozen=True)
class ListedPage:
    """One page as the provider returned it, its records that no earlier page had, and the position after it."""

    answer: TransactionPage
    records: list[TransactionRecord]
    position: ListPosition
    is_last: bool


def read_pages(
    currency: str = "",
    *,
    start: ListPosition | None = None,
    back_to: datetime | None = None,
    deadline: float | None = None,
    before_request: Callable[[], object] | None = None,
) -> Iterator[ListedPage]:
    """The pages of the list, each requested only when the caller asks for it.

    The last one is the end of the list or, with `back_to`, the one that completes more than a page of older
    records in a row: the list is not strictly ordered, so a single older record proves nothing. No record that
    is listed all the time is left out (`PageReader`). `deadline` is for one page, in seconds. Raises
    GatewayError, and what `before_request` raises.

    With `start`, the page before it is read once more, as overlap. If the list has become shorter since, the
    reading begins as much earlier.
    """

    # the specification of GET /transaction names these currencies only
    currency_filter = currency if currency in _FILTERABLE_CURRENCIES else None

    def read(number: int) -> TransactionPage:
        if before_request is not None:
            before_request()
        transactions = gateway(deadline=deadline).transactions
        return transactions.page(currency=currency_filter, page=number, per_page=PAGE_SIZE)

    start = start or ListPosition()
    reader, page = PageReader(PAGE_SIZE), None
    if start.page > 1:
        page = read(start.page - 1)
        shorter_by = max(0, start.total - page.total)
        if shorter_by:
            pages_back = 1 - (-shorter_by // max(1, min(PAGE_SIZE, page.per_page)))
            reader, page = PageReader(PAGE_SIZE, max(1, start.page - pages_back)), None
        else:
            reader = PageReader(PAGE_SIZE, start.page - 1)
    older_in_a_row, is_last = 0, False
    while not is_last:
        page = page or read(reader.number)
        records = reader.take(page)
        for record in records:
            is_older = back_to is not None and record.created_at is not None and record.created_at < back_to
            older_in_a_row = older_in_a_row + 1 if is_older else 0
        is_last = reader.is_done or older_in_a_row > PAGE_SIZE
        yield ListedPage(page, records, ListPosition(reader.number, page.total), is_last)
        page = None


def recent_transactions(
    currency: str, *, back_to: datetime, before_request: Callable[[], object] | None = None
) -> Iterator[TransactionRecord]:
    """The provider's transactions, newest first, since `back_to`. Raises GatewayError, and what `before_request`
    raises.

    Includes some older ones, because the list is not strictly ordered; the caller must check each record's
    time.
    """
    pages = read_pages(currency, back_to=back_to, before_request=before_request)
    return chain.from_iterable(page.records for page in pages)


def stable_transactions(
    currency: str,
    *,
    back_to: datetime,
    condition: Callable[[TransactionRecord], bool],
    before_request: Callable[[], object] | None = None,
) -> list[TransactionRecord]:
    """The recent transactions for which `condition` is true, once two consecutive passes agree on them.

    Pages shift while they are read, so one pass proves nothing. Raises GatewayError, UnstableListError, and what
    `before_request` raises.
    """
    seen: dict[str, str] | None = None
    for _ in range(MAX_PASSES):
        recent = recent_transactions(currency, back_to=back_to, before_request=before_request)
        found = [record for record in recent if condition(record)]
        before, seen = seen, {record.transaction_id: record.status for record in found}
        if seen == before:
            return found
    raise UnstableListError("The provider's list changed each time it was read")


@dataclass(frozen=True)
class ListedTransactions:
    """The provider's newest transactions.

    `is_complete` is False if time ran out before the requested moment was reached.
    """

    records: list[TransactionRecord]
    is_complete: bool


def transactions_since(currency: str, moment: datetime) -> ListedTransactions:
    """The provider's transactions since `moment`, newest first, within `PAGE_TIMEOUT`.

    Raises GatewayError.
    """
    until, found, is_complete = time.monotonic() + PAGE_TIMEOUT, [], False
    for page in read_pages(currency, back_to=moment, deadline=PAGE_TIMEOUT):
        found += _not_before(page.records, moment)
        is_complete = page.is_last
        if time.monotonic() > until:
            break
    return ListedTransactions(found, is_complete)


def _not_before(records: list[TransactionRecord], moment: datetime) -> list[TransactionRecord]:
    return [record for record in records if record.created_at is None or record.created_at >= moment]


@dataclass(frozen=True)
class Watermark:
    """What the provider reported for one currency just before sending.

    A transaction that we cause is newer than this.

    `recent` holds its records of the requested time span, by the provider's clock. None of them is ours,
    however similar.
    """

    transaction_id: str
    balance: Decimal | None
    provider_time: datetime | None
    recent: tuple[TransactionRecord, ...] = ()


EMPTY_WATERMARK = Watermark("", None, None)
_OLDER_RECORDS = 50  # on the first page, so that no more is read: the list is not strictly ordered


def clock_lag(provider_time: datetime | None) -> timedelta:
    """How far the provider's clock is behind ours; zero if it is ahead or not known."""
    return max(timedelta(), clock.now() - provider_time) if provider_time else timedelta()


def read_watermark(
    currency: str,
    *,
    recent_period: timedelta = timedelta(),
    recent_from: datetime | None = None,
    before_request: Callable[[], object] | None = None,
) -> Watermark:
    """The newest transactions and the balance of a currency now. Raises GatewayError, and what `before_request`
    raises before each page after the first.

    `recent` covers `recent_period`, and begins at `recent_from` (by our clock) if that is earlier; empty if neither
    the provider's time nor `recent_from` is known. Without a currency, for operations that move no money, the newest
    transaction of all and no balance.
    """
    newest = next(read_pages(currency)).answer
    recent: Iterable[TransactionRecord] = ()
    starts = [recent_from - clock_lag(newest.answered_at)] if recent_from else []
    if newest.answered_at:
        starts.append(newest.answered_at - recent_period)
    if starts:
        back_to = min(starts)
        recent = found = _not_before(newest.records, back_to)
        older = len(newest.records) - len(found)
        if older < _OLDER_RECORDS and len(newest.records) < newest.total:
            recent = recent_transactions(currency, back_to=back_to, before_request=before_request)
    return Watermark(
        transaction_id=newest.records[0].transaction_id if newest.records else "",
        balance=current_balance(currency) if currency else None,
        provider_time=newest.answered_at,
        recent=tuple(recent),
    )
