"""The one reader of the provider's transaction list: page by page, newest first, while the list changes.

The mirror reads pages, in steps that can be resumed. Sending takes a watermark. Matching reads until two
passes agree. Screens read what a page may wait for.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain

from backoffice.core import background, clock
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.ledger.balances import balance_reader
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

    pages = _all_pages(currency, start or ListPosition(), deadline=deadline, before_request=before_request)
    return pages if back_to is None else _pages_back_to(pages, back_to)


def _page_reader(
    currency: str, deadline: float | None = None, size: int = PAGE_SIZE
) -> Callable[[int], TransactionPage]:
    """A function that reads a page, with the key in use now. It needs no database, so a thread may call it."""
    # the specification of GET /transaction names these currencies only
    currency_filter = currency if currency in _FILTERABLE_CURRENCIES else None
    transactions = gateway(deadline=deadline).transactions
    return lambda number: transactions.page(currency=currency_filter, page=number, per_page=size)


def _all_pages(
    currency: str,
    start: ListPosition = ListPosition(),
    *,
    deadline: float | None = None,
    before_request: Callable[[], object] | None = None,
    first: TransactionPage | None = None,
) -> Iterator[ListedPage]:
    """The pages from `start`, or all, of which the first has been read."""

    def read(number: int) -> TransactionPage:
        if before_request is not None:
            before_request()
        return _page_reader(currency, deadline)(number)

    reader, page = PageReader(PAGE_SIZE), first
    if start.page > 1:
        page = read(start.page - 1)
        shorter_by = max(0, start.total - page.total)
        if shorter_by:
            pages_back = 1 - (-shorter_by // max(1, min(PAGE_SIZE, page.per_page)))
            reader, page = PageReader(PAGE_SIZE, max(1, start.page - pages_back)), None
        else:
            reader = PageReader(PAGE_SIZE, start.page - 1)
    is_last = False
    while not is_last:
        page = page or read(reader.number)
        records = reader.take(page)
        is_last = reader.is_done
        yield ListedPage(page, records, ListPosition(reader.number, page.total), is_last)
        page = None


def _pages_back_to(pages: Iterable[ListedPage], moment: datetime) -> Iterator[ListedPage]:
    """These pages, until one completes more than a page of older records in a row."""
    older_in_a_row = 0
    for page in pages:
        for record in page.records:
            is_older = record.created_at is not None and record.created_at < moment
            older_in_a_row = older_in_a_row + 1 if is_older else 0
        is_last = page.is_last or older_in_a_row > PAGE_SIZE
        yield replace(page, is_last=is_last)
        if is_last:
            return


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


class ListReading:
    """The provider's transactions of one currency since one moment, read once for everybody who shares this.

    Pages are read when they are first needed, and again only for a caller who needs another pass.
    """

    def __init__(
        self, currency: str, *, back_to: datetime, before_request: Callable[[], object] | None = None
    ) -> None:
        self.began_at = clock.now()
        """Whatever was listed by then is in it."""
        self._read_again = partial(
            recent_transactions, currency, back_to=back_to, before_request=before_request
        )
        self._passes: list[_Pass] = []

    def find(self, transaction_id: str) -> TransactionRecord | None:
        """The transaction with this id; None if it is not listed since `back_to`. Reads no further than it has to.

        Raises GatewayError, and what `before_request` raises.
        """
        return next((one for one in self._pass(0) if one.transaction_id == transaction_id), None)

    def stable(self, condition: Callable[[TransactionRecord], bool]) -> list[TransactionRecord]:
        """The recent transactions for which `condition` is true, once two consecutive passes agree on them.

        Pages shift while they are read, so one pass proves nothing. Raises GatewayError, UnstableListError, and what
        `before_request` raises.
        """
        seen: dict[str, str] | None = None
        for number in range(MAX_PASSES):
            found = [record for record in self._pass(number) if condition(record)]
            before, seen = seen, {record.transaction_id: record.status for record in found}
            if seen == before:
                return found
        raise UnstableListError("The provider's list changed each time it was read")

    def _pass(self, number: int) -> "_Pass":
        if number == len(self._passes):
            self._passes.append(_Pass(self._read_again()))
        return self._passes[number]


class _Pass:
    """The transactions of one pass through the list. Each page is requested when the iteration reaches it, and kept.

    An error is kept, too: iterating past it raises it again, without another request.
    """

    def __init__(self, unread: Iterator[TransactionRecord]) -> None:
        self._unread = unread
        self._read: list[TransactionRecord] = []
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[TransactionRecord]:
        position = 0
        while position < len(self._read) or self._read_one():
            yield self._read[position]
            position += 1

    def _read_one(self) -> bool:
        """Read the next transaction; returns whether there is one."""
        if self._error is not None:
            raise self._error
        try:
            record = next(self._unread, None)
        except Exception as exc:
            # Any error, since the iterator is exhausted by it: the next call would report the end of the list.
            self._error = exc
            raise
        if record is None:
            return False
        self._read.append(record)
        return True


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
_MARGIN = timedelta(seconds=5)  # read in addition, since the difference of the clocks is not known exactly
_REMEMBERED_SECONDS = 60.0  # then older records are read again, since their status may have changed
_NEWEST = 25  # records of a first page whose continuation is remembered


@dataclass
class ListMemory:
    """What one reading of the newest transactions found, so that the next one soon after reads one page only."""

    records: list[TransactionRecord] = field(default_factory=list)  # newest first
    total: int = 0
    back_to: datetime | None = None
    read_at: float = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether something was read, not too long ago."""
        return self.back_to is not None and time.monotonic() - self.read_at < _REMEMBERED_SECONDS

    def keep(self, records: list[TransactionRecord], total: int, back_to: datetime) -> None:
        """Remember a whole reading."""
        self.records, self.total, self.back_to = records, total, back_to
        self.read_at = time.monotonic()

    def continued(self, first: TransactionPage, back_to: datetime) -> list[TransactionRecord] | None:
        """The list since `back_to`, of its first page now and what is remembered; None if it has to be read.

        A list that continues as before, and whose total has grown by the new records of its first page, has not changed
        elsewhere.
        """
        if self.back_to is None or self.back_to > back_to or not self.is_fresh:
            return None
        added = first.total - self.total
        same = [record.transaction_id for record in first.records[max(added, 0) :]]
        remembered = [record.transaction_id for record in self.records]
        if added < 0 or not same or same != remembered[: len(same)]:
            return None
        self.records, self.total = [*first.records, *self.records[len(same) :]], first.total
        return self.records


def clock_lag(provider_time: datetime | None) -> timedelta:
    """How far the provider's clock is behind ours; zero if it is ahead or not known."""
    return max(timedelta(), clock.now() - provider_time) if provider_time else timedelta()


@dataclass(frozen=True)
class NewestReading:
    """The first page of the list and the balance of one currency, being read at the same time by two threads."""

    currency: str
    began_at: datetime
    page: Callable[[], TransactionPage]
    """Waits for the page. Raises GatewayError."""
    balance: Callable[[], Decimal | None]
    """Waits for the balance. Raises GatewayError."""
    is_whole_page: bool = True
    """False if only the newest records are read, which continue what is remembered."""


def begin_reading(
    currency: str, memory: ListMemory | None = None, *, with_balance: bool = True
) -> NewestReading:
    """Begin to read. Without a currency, the list of all and no balance. With a fresh `memory` of this currency, only
    the newest records.
    """
    is_whole_page = memory is None or not memory.is_fresh
    size = PAGE_SIZE if is_whole_page else _NEWEST
    return NewestReading(
        currency=currency,
        began_at=clock.now(),
        page=background.start_thread(partial(_page_reader(currency, size=size), 1)),
        balance=background.start_thread(balance_reader(currency))
        if currency and with_balance
        else lambda: None,
        is_whole_page=is_whole_page,
    )


def read_watermark(
    newest: NewestReading,
    *,
    recent_period: timedelta = timedelta(),
    recent_from: datetime | None = None,
    before_request: Callable[[], object] | None = None,
    memory: ListMemory | None = None,
) -> Watermark:
    """What this reading shows of the newest transactions and the balance. Raises GatewayError, and what
    `before_request` raises before each further page.

    `recent` covers `recent_period`, and begins at `recent_from` (by our clock) if that is earlier; empty if neither
    the provider's time nor `recent_from` is known. With the `memory` of an earlier reading of this currency, pages that
    have not changed since are not read again.
    """
    first = newest.page()
    starts = [recent_from - clock_lag(first.answered_at)] if recent_from else []
    if first.answered_at:
        starts.append(first.answered_at - recent_period)
    recent: Sequence[TransactionRecord] = ()
    if starts:
        whole_page = first if newest.is_whole_page else None
        pages = _all_pages(newest.currency, before_request=before_request, first=whole_page)
        recent = _records_since(min(starts), first, pages, memory or ListMemory())
    return Watermark(
        transaction_id=first.records[0].transaction_id if first.records else "",
        balance=newest.balance(),
        provider_time=first.answered_at,
        recent=tuple(recent),
    )


def _records_since(
    back_to: datetime, first: TransactionPage, pages: Iterator[ListedPage], memory: ListMemory
) -> list[TransactionRecord]:
    """The records since `back_to`: of the first page, if enough of it is older, or else of those after it, too."""
    found = _not_before(first.records, back_to)
    if len(first.records) - len(found) >= _OLDER_RECORDS or len(first.records) >= first.total:
        return found
    known = memory.continued(first, back_to)
    if known is None:
        listed = _pages_back_to(pages, back_to - _MARGIN)
        known = [record for page in listed for record in page.records]
        memory.keep(known, first.total, back_to - _MARGIN)
    return known
