"""The provider's transaction list: one page, the summary, and a reader of all pages while the list changes.

New records are inserted at the beginning and shift the others towards later pages, so a reader sees some
twice. A record is missed only if more records disappear before it than arrive. Then the reported total
shrinks, which is how the reader detects that it must step back.
"""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from payments_gateway.errors import ReadFailedError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import Amount, Count, Flag, OptionalAmount, Text, Timestamp, WireModel
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import Duration
from payments_gateway.responses import ParsedResponse, first_object
from payments_gateway.transport import Resource

TransactionType = Literal["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"]


class TransactionRecord(WireModel):
    """One transaction. `status` is fulfilled, processing, failed, or the provider's own word."""

    transaction_id: Annotated[Text, Field(alias="transactionId", min_length=1)]
    amount: Amount
    currency: Text = ""
    type: Text = ""
    status: Text = ""
    fee: OptionalAmount = None
    previous_balance: Annotated[OptionalAmount, Field(alias="prevBalance")] = None
    sender_previous_balance: Annotated[OptionalAmount, Field(alias="senderPrevbalance")] = None
    sender: Text = ""
    username: Text = ""
    from_currency: Annotated[Text, Field(alias="fromCurrency")] = ""
    from_amount: Annotated[OptionalAmount, Field(alias="fromAmount")] = None
    business_id: Annotated[Text, Field(alias="businessId")] = ""
    version: Text = ""
    is_from_registered_user: Annotated[Flag, Field(alias="isFromRegUser")] = None
    date: Text = ""
    created_at: Annotated[Timestamp, Field(alias="createdAt")] = None
    updated_at: Annotated[Timestamp, Field(alias="updatedAt")] = None


class TransactionPage(WireModel):
    """One page of transactions. `answered_at` is the provider's clock, from the Date header."""

    records: Annotated[list[TransactionRecord], Field(alias="data")]
    total: Count
    per_page: Annotated[Count, Field(alias="perPage")]
    page: Count
    pages: Count
    answered_at: datetime | None = None


class TransactionSummary(WireModel):
    """Totals of the filtered transactions, with one page of them.

    The specification does not say in which currency `volume` is, nor the unit of `duration`.
    """

    page: TransactionPage
    volume: Amount
    transaction_count: Annotated[Count, Field(alias="txnCount")]
    duration: OptionalAmount = None


class TransactionUpdate(TransactionRecord):
    """The data of `Transaction updated`: a record as the webhook reports it, its status as sent; to be read again."""

    session_id: Text = ""
    reference: Text = ""
    failure_reason: Text = ""


WINDOW = 10_000
"""How many recently read record ids are remembered: twice the change accepted between two pages."""

_MAX_WASTED_READS = 5
_EMPTY_PAGE = _(
    "The provider's transaction count is {total}, but page {page} of {pages} is empty. "
    "The list that was read is incomplete."
)
_SHRINKING_LIST = _(
    "The provider's transaction count is {total}, but its list keeps getting shorter. "
    "The list that was read is incomplete."
)


class PageReader:
    """Position in the paged list. `number` is the page to request next.

    Pass each requested page to `take` until `is_done`. Every record that is in the list from the first response
    to the last is returned exactly once, although the list changes meanwhile. New records shift the others
    towards later pages: repeated ones are left out, and the new ones are found by the next reading. When
    records disappear, the others shift towards earlier pages: the total reveals it, and earlier pages are read
    again, so some records may come out of order. Memory is bounded however long the list is.

    A reader created at a later page assumes that the pages before it were read, and does not know their
    records.
    """

    def __init__(self, per_page: int, number: int = 1) -> None:
        self.number = number
        self.is_done = False
        self._per_page = per_page
        self._furthest = number
        self._total: int | None = None
        self._wasted_reads = 0
        self._previous: tuple[int, list[str]] | None = None
        self._seen: dict[str, None] = {}
        self._sizes = [per_page] * (number - 1)

    def take(self, page: TransactionPage) -> list[TransactionRecord]:
        """Return the new records of a page, and set `number` to the page to request next.

        Raises ReadFailedError rather than leave out a record or end early: also when the provider counts more
        records than it returns, or changes its list faster than it can be read.
        """
        change = 0 if self._total is None else page.total - self._total
        self._total = page.total
        if abs(change) > WINDOW // 2:
            raise ReadFailedError.of(
                _(
                    "The list changed by {count} transactions while one page was read. The list that was read is "
                    "incomplete."
                ),
                count=abs(change),
            )
        if change < 0 and self.number > 1:
            self._step_back(change, page)
            return []
        if not page.records and page.total > (self.number - 1) * self._least_size(page):
            self._count_wasted_read(_EMPTY_PAGE, page)
            return []
        self._check_not_previous_page(page)
        new = [record for record in page.records if self._is_new(record.transaction_id)]
        self._advance(page, has_progressed=bool(new))
        return new

    def _step_back(self, change: int, page: TransactionPage) -> None:
        self._count_wasted_read(_SHRINKING_LIST, page)
        self._previous = None
        self.number = max(1, self.number + change // self._least_size(page))
        del self._sizes[self.number - 1 :]
        if (self._furthest - self.number) * self._per_page > WINDOW // 2:
            raise ReadFailedError.of(
                _("Too many transactions disappeared from the list. The list that was read is incomplete.")
            )

    def _advance(self, page: TransactionPage, *, has_progressed: bool) -> None:
        if has_progressed:
            self._wasted_reads = 0
        self._sizes.append(len(page.records))
        if page.records and self.number < page.pages:
            self.number += 1
            self._furthest = max(self._furthest, self.number)
            return
        shown = sum(self._sizes)
        if page.total > shown:
            raise ReadFailedError.of(
                _(
                    "The provider's transaction count is {total}, but its list has {shown} up to page {page}, "
                    "the last. The list that was read is incomplete."
                ),
                total=page.total,
                shown=shown,
                page=self.number,
            )
        self.is_done = True

    def _least_size(self, page: TransactionPage) -> int:
        """The minimum number of records on a full page; the provider may return fewer than requested."""
        return max(1, min(self._per_page, page.per_page))

    def _count_wasted_read(self, template: str, page: TransactionPage) -> None:
        """Count a read without progress. Raises ReadFailedError after too many in a row."""
        self._wasted_reads += 1
        if self._wasted_reads >= _MAX_WASTED_READS:
            raise ReadFailedError.of(template, total=self._total, page=self.number, pages=page.pages)

    def _check_not_previous_page(self, page: TransactionPage) -> None:
        """Detect a provider that ignores the page number and returns the same page forever."""
        shown = (page.page, [record.transaction_id for record in page.records])
        if page.records and shown == self._previous:
            raise ReadFailedError.of(
                _("The provider returned page {returned} instead of page {page}."),
                returned=page.page,
                page=self.number,
            )
        self._previous = shown

    def _is_new(self, transaction_id: str) -> bool:
        if transaction_id in self._seen:
            return False
        self._seen[transaction_id] = None
        if len(self._seen) > WINDOW:
            del self._seen[next(iter(self._seen))]
        return True


class Transactions(Resource):
    """The operations under /transaction. They change nothing and are retried."""

    def page(
        self,
        *,
        currency: str | None = None,
        type: TransactionType | None = None,
        duration: Duration | None = None,
        page: int = 1,
        per_page: int = 100,
    ) -> TransactionPage:
        """Return one page of transactions, newest first (GET /transaction).

        Filters by currency (NGN, USD), type and duration; omitted filters do not apply. Pages count from 1.
        One unreadable record fails the whole page: leaving it out could hide a debit. Raises RejectedError,
        ReadFailedError. Specification: Endpoints, GET /transaction; Transaction record, page wrapper.
        """
        query = self._query(currency, type, duration, page, per_page)
        return self._transport.read(
            "GET", "/transaction", query=query, into=partial(_parse_page, self._profile)
        )

    def summary(
        self,
        *,
        currency: str | None = None,
        type: TransactionType | None = None,
        duration: Duration | None = None,
        page: int = 1,
        per_page: int = 100,
    ) -> TransactionSummary:
        """Return the totals of the transactions, with one page of them (GET /transaction/summary).

        Takes the filters of `page`. The specification does not say in which currency the volume is, nor the
        unit of the duration: request one currency at a time. Raises RejectedError, ReadFailedError.
        Specification: Endpoints, GET /transaction/summary; Transaction record, summary.
        """
        query = self._query(currency, type, duration, page, per_page)
        into = partial(_parse_summary, self._profile)
        return self._transport.read("GET", "/transaction/summary", query=query, into=into)

    def _query(
        self,
        currency: str | None,
        type: TransactionType | None,
        duration: Duration | None,
        page: int,
        per_page: int,
    ) -> dict[str, object]:
        profile = self._profile
        return {
            profile.transaction_currency_query: currency,
            profile.transaction_type_query: type,
            profile.transaction_duration_query: duration and profile.durations.get(duration, duration),
            profile.transaction_page_query: page - 1 + profile.first_page,
            profile.transaction_per_page_query: per_page,
        }


def _parse_page(
    profile: ProviderProfile, response: ParsedResponse, members: dict[str, object] | None = None
) -> TransactionPage:
    """Read a page from the data of the response, or from these members of it."""
    members = response.data if members is None else members
    records = members.get("data")
    if isinstance(records, list):
        records = [_with_known_status(profile, record) for record in records]
    return TransactionPage.model_validate(members | {"data": records, "answered_at": response.date})


def _parse_summary(profile: ProviderProfile, response: ParsedResponse) -> TransactionSummary:
    page = _parse_page(profile, response, first_object(response.data, [("txn",)]))
    totals = first_object(response.data, [("summary",)])
    return TransactionSummary.model_validate(totals | {"page": page})


def _with_known_status(profile: ProviderProfile, record: object) -> object:
    """Translate the status of a record to ours. The schema rejects a value that is not a record."""
    if isinstance(record, dict) and isinstance(status := record.get("status"), str):
        return record | {"status": profile.status(status)}
    return record
