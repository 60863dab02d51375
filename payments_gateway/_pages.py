"""Reading a list page by page while it changes.

New records come at its beginning, and push the others towards later pages. So a record can only slip past a reader,
to a page already read, when more records vanish before it than arrive; and then the list is shorter than it was.
That is why the total tells all that a reader must know.
"""

from collections.abc import Callable, Iterator

from payments_gateway.errors import ReadFailedError
from payments_gateway.schemas.transactions import TransactionPage, TransactionRecord

WINDOW = 10_000
"""How many of the records read last are remembered: twice what may come or go between two pages."""

_PATIENCE = 5


def read_through(read: Callable[[int], TransactionPage], per_page: int) -> Iterator[TransactionRecord]:
    """Yield the records of the pages 1, 2, …, each once, as `Transactions.iterate` promises.

    Raises ReadFailedError rather than leave out a record, or yield one twice.
    """
    reader = PageReader(per_page)
    while not reader.is_done:
        yield from reader.take(read(reader.number))


class PageReader:
    """Where in the list somebody is, for readers that keep their place. `number` is the page to be asked for next.

    `take` each page that was asked for, until `is_done`. A reader that begins at a later page takes it that the pages
    before were read, and knows nothing of what was in them.
    """

    def __init__(self, per_page: int, number: int = 1) -> None:
        self.number = number
        self.is_done = False
        self._per_page = per_page
        self._furthest = number
        self._total: int | None = None
        self._in_vain = 0
        self._previous: tuple[int, list[str]] | None = None
        self._seen: dict[str, None] = {}
        self._sizes = [per_page] * (number - 1)

    def take(self, page: TransactionPage) -> list[TransactionRecord]:
        """Return what is new on a page, and move on: to the next one, back, or nowhere if it is empty too early.

        Raises ReadFailedError where `read_through` does.
        """
        moved = 0 if self._total is None else page.total - self._total
        self._total = page.total
        self._refuse_a_jump(moved)
        if moved < 0 and self.number > 1:
            self._step_back(moved, page)
            return []
        if not page.records and page.total > (self.number - 1) * self._least_size(page):
            self._waste(f"page {self.number} of {page.pages} is empty")
            return []
        self._refuse_a_repetition(page)
        fresh = [record for record in page.records if self._is_new(record.transaction_id)]
        self._go_on(page, has_news=bool(fresh))
        return fresh

    def _step_back(self, moved: int, page: TransactionPage) -> None:
        self._waste("the list gets shorter all the time")
        self._previous = None
        self.number = max(1, self.number + moved // self._least_size(page))
        del self._sizes[self.number - 1 :]
        if (self._furthest - self.number) * self._per_page > WINDOW // 2:
            raise ReadFailedError("More transactions vanished than are remembered. Read the list again.")

    def _go_on(self, page: TransactionPage, *, has_news: bool) -> None:
        if has_news:
            self._in_vain = 0
        self._sizes.append(len(page.records))
        if page.records and self.number < page.pages:
            self.number += 1
            self._furthest = max(self._furthest, self.number)
            return
        shown = sum(self._sizes)
        if page.total > shown:
            raise ReadFailedError(
                f"The service counts {page.total} transactions, and shows {shown} up to page {self.number}, the last. "
                "What was read is not the whole list."
            )
        self.is_done = True

    def _least_size(self, page: TransactionPage) -> int:
        """How many records a page has at least, whether or not the service gives as many as were asked for."""
        return max(1, min(self._per_page, page.per_page))

    def _waste(self, why: str) -> None:
        """Count what brought nothing. A list that does not let itself be read is given up."""
        self._in_vain += 1
        if self._in_vain >= _PATIENCE:
            raise ReadFailedError(
                f"The service counts {self._total} transactions, but {why}. What was read is not the whole list."
            )

    def _refuse_a_jump(self, moved: int) -> None:
        if abs(moved) > WINDOW // 2:
            raise ReadFailedError(
                f"The list changed by {abs(moved)} transactions while one page was read. Read it again."
            )

    def _refuse_a_repetition(self, page: TransactionPage) -> None:
        """A service that does not understand which page is meant shows the same one for ever, and says so."""
        shown = (page.page, [record.transaction_id for record in page.records])
        if page.records and shown == self._previous:
            raise ReadFailedError(
                f"The service was asked for page {self.number} and answered with page {page.page} once more."
            )
        self._previous = shown

    def _is_new(self, transaction_id: str) -> bool:
        if transaction_id in self._seen:
            return False
        self._seen[transaction_id] = None
        if len(self._seen) > WINDOW:
            del self._seen[next(iter(self._seen))]
        return True
