"""Read the provider's list in steps of some pages, which can be resumed after a crash.

Each step is merged before the next one is read.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from backoffice.core import fault_points
from backoffice.ledger.mirror.rows import MirrorRow, UnstorableRecordError, rows_of
from backoffice.ledger.provider_list import ListedPage, ListPosition, read_pages
from payments_gateway import GatewayError

PAGE_DEADLINE = 20.0  # seconds for one page
_RECORDS_PER_STEP = 1000  # records merged in one transaction, together with the new position


@dataclass
class ListStep:
    """The rows of some pages, merged in one transaction, and the position after these pages."""

    place: ListPosition
    rows: dict[str, MirrorRow] = field(default_factory=dict)
    read: int = 0  # records, including repeated ones
    pages: int = 0  # total number of pages at the provider
    is_last: bool = False

    def add(self, page: ListedPage) -> None:
        """Raises UnstorableRecordError, and then the step stays as it was."""
        self.rows |= rows_of(page.records)
        self.read += len(page.records)
        self.place, self.pages, self.is_last = page.position, page.answer.pages, page.is_last


def read_steps(
    start: ListPosition,
    *,
    until: float,
    renew_lease: Callable[[], object],
    back_to: datetime | None = None,
) -> Iterator[ListStep]:
    """Yield steps until this monotonic time, the end of the list, or records older than `back_to`.

    The position moves at least once, even after `until`. The caller merges each step before it requests the
    next. If a page fails, the pages read before it are yielded as a step first; then the error is raised, and
    the next run continues there. Raises GatewayError, UnstorableRecordError, and what `renew_lease` raises.
    """
    step, begun_at_page = ListStep(start), start.page
    try:
        for page in read_pages(
            start=start, back_to=back_to, deadline=PAGE_DEADLINE, before_request=renew_lease
        ):
            step.add(page)
            is_time_over = time.monotonic() > until
            is_full = len(step.rows) >= _RECORDS_PER_STEP or is_time_over
            # The overlap page alone does not move the position.
            if step.is_last or (is_full and step.place.page != begun_at_page):
                yield from _between_fault_points(step)
                if is_time_over:
                    return
                step, begun_at_page = ListStep(step.place), step.place.page
    except (GatewayError, UnstorableRecordError):
        if step.pages:
            yield from _between_fault_points(step)
        raise


def _between_fault_points(step: ListStep) -> Iterator[ListStep]:
    fault_points.reach("mirror.read")
    yield step
    fault_points.reach("mirror.merged")
