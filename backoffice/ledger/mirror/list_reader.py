"""Read the provider's list page by page, in steps that can be resumed after a crash.

Each step is merged before the next one is read.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil

from backoffice.core import fault_points
from backoffice.core.gateway import gateway
from backoffice.core.leases import Lease
from backoffice.ledger.mirror.rows import MirrorRow, UnstorableRecordError, rows_of
from payments_gateway import GatewayError, PageReader, TransactionPage

PER_PAGE = 100
"""The specification gives no maximum page size; the provider is known to accept this one."""


PAGE_DEADLINE = 20.0  # seconds for one page


def read_page(number: int, lease: Lease) -> TransactionPage:
    """One page of the list. Raises GatewayError, and LeaseLostError before any request is made."""
    lease.renew()
    return gateway(deadline=PAGE_DEADLINE).transactions.page(page=number, per_page=PER_PAGE)


_RECORDS_PER_STEP = 1000  # records merged in one transaction, together with the new position


@dataclass(frozen=True)
class ListPosition:
    """The next page to read, and the total that the provider reported when the page before it was read."""

    page: int = 1
    total: int = 0


@dataclass
class ListStep:
    """The rows of some pages, merged in one transaction, and the position after these pages."""

    place: ListPosition
    rows: dict[str, MirrorRow] = field(default_factory=dict)
    read: int = 0  # records, including repeated ones
    pages: int = 0  # total number of pages at the provider
    is_last: bool = False

    def take(self, page: TransactionPage, reader: PageReader) -> None:
        """Add one page. Raises ReadFailedError or UnstorableRecordError if it cannot be read or stored."""
        records = reader.take(page)
        self.rows |= rows_of(records)
        self.read += len(records)
        self.place, self.pages = ListPosition(reader.number, page.total), page.pages
        self.is_last = reader.is_done


def read_steps(
    place: ListPosition, lease: Lease, *, until: float, is_enough: Callable[[TransactionPage], bool]
) -> Iterator[ListStep]:
    """Yield steps until this monotonic time, the end of the list, or a page for which `is_enough` is true.

    At least one page is read, even after `until`. The caller merges each step before it requests the next. If
    a page fails, the pages read before it are yielded as a step first; then the error is raised, and the next
    run continues there. Raises GatewayError, UnstorableRecordError, LeaseLostError.
    """
    reader, page = _resume_at(place, lease)
    while True:
        step = ListStep(place)
        try:
            _fill_step(step, lease, reader, page, until=until, is_enough=is_enough)
        except (GatewayError, UnstorableRecordError):
            if step.pages:
                yield from _between_fault_points(step)
            raise
        yield from _between_fault_points(step)
        if step.is_last or time.monotonic() > until:
            return
        place, page = step.place, None


def _between_fault_points(step: ListStep) -> Iterator[ListStep]:
    fault_points.reach("mirror.read")
    yield step
    fault_points.reach("mirror.merged")


def _fill_step(
    step: ListStep,
    lease: Lease,
    reader: PageReader,
    page: TransactionPage | None,
    *,
    until: float,
    is_enough: Callable[[TransactionPage], bool],
) -> None:
    """Fill a step with the overlap page (already read), if there is one, and the pages after it."""
    is_overlap = page is not None
    while True:
        page = page or read_page(reader.number, lease)
        step.take(page, reader)
        step.is_last = step.is_last or is_enough(page)
        is_full = len(step.rows) >= _RECORDS_PER_STEP or time.monotonic() > until
        if step.is_last or (is_full and not is_overlap):
            return
        page, is_overlap = None, False


def _resume_at(place: ListPosition, lease: Lease) -> tuple[PageReader, TransactionPage | None]:
    """A reader at the next page, and the page before it, already read, as overlap.

    If the list has become shorter since, the reader starts at an earlier page and there is no overlap page.
    """
    if place.page == 1:
        return PageReader(PER_PAGE), None
    page = read_page(place.page - 1, lease)
    shorter_by = place.total - page.total
    if shorter_by <= 0:
        return PageReader(PER_PAGE, place.page - 1), page
    back = ceil(shorter_by / max(1, min(PER_PAGE, page.per_page))) + 1
    return PageReader(PER_PAGE, max(1, place.page - back)), None
