"""Transactions: the service's ledger, page by page."""

from collections.abc import Iterator
from functools import partial

from payments_gateway._answers import Reply, first_object
from payments_gateway._pages import read_through
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.schemas.transactions import (
    Duration,
    TransactionPage,
    TransactionRecord,
    TransactionSummary,
    TransactionType,
)


class Transactions:
    """The operations under /transaction. All of them change nothing, and are tried again where that may help."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def page(
        self,
        *,
        currency: str | None = None,
        type: TransactionType | None = None,
        duration: Duration | None = None,
        page: int = 1,
        per_page: int = 100,
    ) -> TransactionPage:
        """Return one page of the ledger, newest first (GET /transaction).

        Filters by currency (NGN, USD), type and duration; what is left out filters nothing. Pages count from 1. A page
        that cannot be read whole is not read at all: a record left out could hide a debit. Raises RejectedError,
        ReadFailedError. Specification: Endpoints, GET /transaction; Transaction record, page wrapper.
        """
        query = self._query(currency, type, duration, page, per_page)
        return self._transport.read("GET", "/transaction", query=query, into=partial(_page, self._dialect))

    def summary(
        self,
        *,
        currency: str | None = None,
        type: TransactionType | None = None,
        duration: Duration | None = None,
        page: int = 1,
        per_page: int = 100,
    ) -> TransactionSummary:
        """Return the totals of the ledger, with one page of its records (GET /transaction/summary).

        Takes the filters of `page`. In which currency the volume and in which unit the duration is, the specification
        does not say: ask for one currency at a time. Raises RejectedError, ReadFailedError.
        Specification: Endpoints, GET /transaction/summary; Transaction record, summary.
        """
        query = self._query(currency, type, duration, page, per_page)
        into = partial(_summary, self._dialect)
        return self._transport.read("GET", "/transaction/summary", query=query, into=into)

    def iterate(
        self,
        *,
        currency: str | None = None,
        type: TransactionType | None = None,
        duration: Duration | None = None,
        per_page: int = 100,
    ) -> Iterator[TransactionRecord]:
        """Yield the records of all pages, newest first, asking for a page when it is needed (GET /transaction).

        Every record that is in the list from the first answer to the last is yielded exactly once, although the
        list changes meanwhile. New ones push the others towards later pages: what is seen again is left out, and the
        new ones are for the next iteration. Where some vanish, the others move towards earlier pages: the total tells,
        and the page before is read again, so that some records may come in another order.

        Memory stays nearly the same however long the list is. Raises RejectedError, and ReadFailedError also when the
        service counts more than it shows, or changes its list faster than it can be read; it never ends early in
        silence.
        """
        return read_through(
            lambda number: self.page(
                currency=currency, type=type, duration=duration, page=number, per_page=per_page
            ),
            per_page,
        )

    def _query(
        self,
        currency: str | None,
        type: TransactionType | None,
        duration: Duration | None,
        page: int,
        per_page: int,
    ) -> dict[str, object]:
        dialect = self._dialect
        return {
            dialect.transaction_currency_query: currency,
            dialect.transaction_type_query: type,
            dialect.transaction_duration_query: duration and dialect.durations.get(duration, duration),
            dialect.transaction_page_query: page - 1 + dialect.first_page,
            dialect.transaction_per_page_query: per_page,
        }


def _page(dialect: Dialect, reply: Reply) -> TransactionPage:
    return _page_in(dialect, reply, reply.data)


def _summary(dialect: Dialect, reply: Reply) -> TransactionSummary:
    page = _page_in(dialect, reply, first_object(reply.data, [("txn",)]))
    totals = first_object(reply.data, [("summary",)])
    return TransactionSummary.model_validate(totals | {"page": page})


def _page_in(dialect: Dialect, reply: Reply, found: dict[str, object]) -> TransactionPage:
    records = found.get("data")
    if isinstance(records, list):
        records = [_in_our_words(dialect, record) for record in records]
    return TransactionPage.model_validate(found | {"data": records, "answered_at": reply.date})


def _in_our_words(dialect: Dialect, record: object) -> object:
    """Give a record our word for its status. What is no record is left to the schema to refuse."""
    if isinstance(record, dict) and isinstance(status := record.get("status"), str):
        return record | {"status": dialect.status(status)}
    return record
