"""Read the provider's list page by page, in steps that can be resumed after a kill. Each step is merged before the
next.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil

from backoffice.core import fault_points
from backoffice.core.gateway import gateway
from backoffice.ledger.mirror.lease import SyncLease
from backoffice.ledger.mirror.rows import MirrorRow, UnstorableRecordError, rows_of
from payments_gateway import GatewayError, PageReader, TransactionPage

PER_PAGE = 100
"""The specification shows no bounds of a page: so many are what we know to be given."""


PAGE_DEADLINE = 20.0  # seconds for one page


def read_page(number: int, lease: SyncLease) -> TransactionPage:
    """One page of the list. Raises GatewayError, and LeaseLostError before anybody is asked."""
    lease.renew()
    return gateway(deadline=PAGE_DEADLINE).transactions.page(page=number, per_page=PER_PAGE)


_RECORDS_PER_STEP = 1000  # records merged in one transaction, with the place that was reached


@dataclass(frozen=True)
class ListPosition:
    """The page to be read next, and how many records the service counted when it became that."""

    page: int = 1
    total: int = 0


@dataclass
class ListStep:
    """What is merged at once: the rows of some pages, and the place behind the last of them."""

    place: ListPosition
    rows: dict[str, MirrorRow] = field(default_factory=dict)
    read: int = 0  # records, those that came twice included
    pages: int = 0  # that the service has in all
    is_last: bool = False

    def take(self, page: TransactionPage, reader: PageReader) -> None:
        """One page more, unless it cannot be read or kept. Raises ReadFailedError, UnfitRecordError."""
        records = reader.take(page)
        self.rows |= rows_of(records)
        self.read += len(records)
        self.place, self.pages = ListPosition(reader.number, page.total), page.pages
        self.is_last = reader.is_done


def read_steps(
    place: ListPosition, lease: SyncLease, *, until: float, is_enough: Callable[[TransactionPage], bool]
) -> Iterator[ListStep]:
    """Read on up to this moment of the monotonic clock, to the end of the list or to a page that is enough.

    A page at least, however late it is. Each step has to be merged before the next one is asked for. What was read
    before a page that fails is a step as well: only then that failure is raised, and the next reading begins there.
    Raises GatewayError, UnfitRecordError, LeaseLostError.
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
    lease: SyncLease,
    reader: PageReader,
    page: TransactionPage | None,
    *,
    until: float,
    is_enough: Callable[[TransactionPage], bool],
) -> None:
    """The page that overlaps with what was read before, if there is one, and further ones."""
    is_overlap = page is not None
    while True:
        page = page or read_page(reader.number, lease)
        step.take(page, reader)
        step.is_last = step.is_last or is_enough(page)
        is_full = len(step.rows) >= _RECORDS_PER_STEP or time.monotonic() > until
        if step.is_last or (is_full and not is_overlap):
            return
        page, is_overlap = None, False


def _resume_at(place: ListPosition, lease: SyncLease) -> tuple[PageReader, TransactionPage | None]:
    """A reader at the page that comes next and the page, or at an earlier one if the list has become shorter since."""
    if place.page == 1:
        return PageReader(PER_PAGE), None
    page = read_page(place.page - 1, lease)
    shorter_by = place.total - page.total
    if shorter_by <= 0:
        return PageReader(PER_PAGE, place.page - 1), page
    back = ceil(shorter_by / max(1, min(PER_PAGE, page.per_page))) + 1
    return PageReader(PER_PAGE, max(1, place.page - back)), None
