"""Transactions: the service's ledger, page by page."""

from collections.abc import Iterator
from functools import partial

from payments_gateway._answers import Reply
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.schemas import Duration, TransactionPage, TransactionRecord, TransactionType


class Transactions:
    """The operations under /transaction."""

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

        A page that cannot be read whole is not read at all: a record left out could hide a debit.
        """
        dialect = self._dialect
        query = {
            dialect.transaction_currency_query: currency,
            dialect.transaction_type_query: type,
            dialect.transaction_duration_query: duration and dialect.durations.get(duration, duration),
            dialect.transaction_page_query: page - 1 + dialect.first_page,
            dialect.transaction_per_page_query: per_page,
        }
        return self._transport.read("GET", "/transaction", query=query, into=partial(_page, dialect))

    def iterate(
        self,
        *,
        currency: str | None = None,
        type: TransactionType | None = None,
        duration: Duration | None = None,
        per_page: int = 100,
    ) -> Iterator[TransactionRecord]:
        """Yield the records of all pages, each transaction once, asking for a page when it is needed.

        Records that arrive meanwhile push the others towards later pages: what is seen again is left out, and
        what arrived after the first page was read is found by the next iteration, not by this one. Ends at the
        last page as the newest answer counts them, or at the first empty one.
        """
        seen: set[str] = set()
        number = 1
        while True:
            page = self.page(currency=currency, type=type, duration=duration, page=number, per_page=per_page)
            for record in page.records:
                if record.transaction_id not in seen:
                    seen.add(record.transaction_id)
                    yield record
            if not page.records or number >= page.pages:
                return
            number += 1


def _page(dialect: Dialect, reply: Reply) -> TransactionPage:
    page = TransactionPage.model_validate(reply.data | {"answered_at": reply.date})
    records = [record.model_copy(update={"status": dialect.status(record.status)}) for record in page.records]
    return page.model_copy(update={"records": records})
