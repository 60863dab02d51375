"""Reads on in the list from a place, in steps that are merged at once: what both kinds of pass have in common."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil

from backoffice.core import fault_points
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.newest import PER_PAGE, page_at
from backoffice.ledger.mirror.rows import Row, UnfitRecordError, rows_of
from payments_gateway import GatewayError, PageReader, TransactionPage

_AT_ONCE = 1000  # records merged in one transaction, with the place that was reached


@dataclass(frozen=True)
class Place:
    """The page to be read next, and how many records the service counted when it became that."""

    page: int = 1
    total: int = 0


@dataclass
class Step:
    """What is merged at once: the rows of some pages, and the place behind the last of them."""

    place: Place
    rows: dict[str, Row] = field(default_factory=dict)
    read: int = 0  # records, those that came twice included
    pages: int = 0  # that the service has in all
    is_last: bool = False

    def take(self, page: TransactionPage, reader: PageReader) -> None:
        """One page more, unless it cannot be read or kept. Raises ReadFailedError, UnfitRecordError."""
        records = reader.take(page)
        self.rows |= rows_of(records)
        self.read += len(records)
        self.place, self.pages = Place(reader.number, page.total), page.pages
        self.is_last = reader.is_done


def steps(
    place: Place, lease: Lease, *, until: float, is_enough: Callable[[TransactionPage], bool]
) -> Iterator[Step]:
    """Read on up to this moment of the monotonic clock, to the end of the list or to a page that is enough.

    A page at least, however late it is. Each step has to be merged before the next one is asked for. What was read
    before a page that fails is a step as well: only then that failure is raised, and the next reading begins there.
    Raises GatewayError, UnfitRecordError, LeaseLostError.
    """
    reader, page = _where_it_was(place, lease)
    while True:
        step = Step(place)
        try:
            _fill(step, lease, reader, page, until=until, is_enough=is_enough)
        except (GatewayError, UnfitRecordError):
            if step.pages:
                yield from _merged(step)
            raise
        yield from _merged(step)
        if step.is_last or time.monotonic() > until:
            return
        place, page = step.place, None


def _merged(step: Step) -> Iterator[Step]:
    fault_points.reach("mirror.read")
    yield step
    fault_points.reach("mirror.merged")


def _fill(
    step: Step,
    lease: Lease,
    reader: PageReader,
    page: TransactionPage | None,
    *,
    until: float,
    is_enough: Callable[[TransactionPage], bool],
) -> None:
    """The page that overlaps with what was read before, if there is one, and further ones."""
    is_overlap = page is not None
    while True:
        page = page or page_at(reader.number, lease)
        step.take(page, reader)
        step.is_last = step.is_last or is_enough(page)
        is_full = len(step.rows) >= _AT_ONCE or time.monotonic() > until
        if step.is_last or (is_full and not is_overlap):
            return
        page, is_overlap = None, False


def _where_it_was(place: Place, lease: Lease) -> tuple[PageReader, TransactionPage | None]:
    """A reader at the page that comes next and the page, or at an earlier one if the list has become shorter since."""
    if place.page == 1:
        return PageReader(PER_PAGE), None
    page = page_at(place.page - 1, lease)
    shorter_by = place.total - page.total
    if shorter_by <= 0:
        return PageReader(PER_PAGE, place.page - 1), page
    back = ceil(shorter_by / max(1, min(PER_PAGE, page.per_page))) + 1
    return PageReader(PER_PAGE, max(1, place.page - back)), None
