"""A pass: reads deeper than a round, page by page over many turns; a killed process goes on where it was.

New records come at the list's beginning and push the others towards later pages, which only repeats some. A record
can slip past to a page already read only when others vanish, and then the total tells (`payments_gateway/_pages.py`).
A pass through the whole list proves itself in the end: as many records must be here as the service counts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from backoffice.core import clock, fault_points
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.merging import merge
from backoffice.ledger.mirror.missing import forget_sightings, mark_missing, number_missing
from backoffice.ledger.mirror.newest import PER_PAGE, page_at, read_newest
from backoffice.ledger.mirror.writing import note_sightings
from backoffice.ledger.mirrored import Mirror
from payments_gateway import PageReader, TransactionPage, TransactionRecord

DAY_EVERY = timedelta(hours=1)
WHOLE_EVERY = timedelta(days=1)
A_DAY_BACK = timedelta(hours=25)  # an hour more, for clocks that disagree
TRIES = 3
_AT_ONCE = 1000  # records merged in one transaction, with the place that was reached
Depth = Mirror.Depth


def due_depth(mirror: Mirror) -> Depth | None:
    """How deep a pass is due, one that has begun included; None if none is."""
    now = clock.now()
    if mirror.pass_depth:
        return Depth(mirror.pass_depth)
    if mirror.whole_at is None or mirror.whole_at <= now - WHOLE_EVERY:
        return Depth.WHOLE
    return Depth.DAY if mirror.day_at is None or mirror.day_at <= now - DAY_EVERY else None


def begin_pass(lease: Lease, depth: Depth, *, tries: int = 0) -> None:
    """Start at the first page. Raises LeaseLostError."""
    with transaction.atomic(durable=True):
        lease.prove()
        forget_sightings()
        Mirror.objects.filter(pk=1).update(
            pass_depth=depth,
            pass_begun_at=clock.now(),
            pass_page=1,
            pass_pages=0,
            pass_total=0,
            pass_read=0,
            pass_tries=tries,
        )


def go_on(lease: Lease, *, until: float, tell: Callable[[Mirror], object]) -> None:
    """Read on in the pass that has begun, up to this moment of the monotonic clock or to its end, a page at least.

    `tell` hears of every step. Raises GatewayError, UnfitRecordError, LeaseLostError; then the next one goes on from
    the last step that was merged.
    """
    mirror = Mirror.objects.get(pk=1)
    reader, page = _where_it_was(mirror, lease)
    while True:
        step = _read_some(mirror, lease, reader, page, until)
        page = None
        fault_points.reach("mirror.read")
        _merge(lease, mirror, reader.number, step)
        fault_points.reach("mirror.merged")
        tell(Mirror.objects.get(pk=1))
        if reader.is_done or step.is_enough:
            _end(lease, mirror)
            return
        if time.monotonic() > until:
            return


@dataclass
class _Step:
    """What is merged at once: some pages, of which the last told this total, and whether they are deep enough."""

    records: list[TransactionRecord] = field(default_factory=list)
    pages: int = 0
    total: int = 0
    is_enough: bool = False

    def take(self, page: TransactionPage, reader: PageReader, mirror: Mirror) -> None:
        """One page more."""
        self.records += reader.take(page)
        self.pages, self.total = page.pages, page.total
        self.is_enough = _is_deep_enough(mirror, page)


def _read_some(
    mirror: Mirror, lease: Lease, reader: PageReader, overlap: TransactionPage | None, until: float
) -> _Step:
    """The page that overlaps with what was read before, and further ones: one at least, however late it is."""
    step = _Step()
    if overlap is not None:
        step.take(overlap, reader, mirror)
    while not (reader.is_done or step.is_enough):
        step.take(page_at(reader.number, lease), reader, mirror)
        if len(step.records) >= _AT_ONCE or time.monotonic() > until:
            break
    return step


def _where_it_was(mirror: Mirror, lease: Lease) -> tuple[PageReader, TransactionPage | None]:
    """A reader at the page that comes next and the page, or at an earlier one if the list has become shorter since."""
    if mirror.pass_page == 1:
        return PageReader(PER_PAGE), None
    page = page_at(mirror.pass_page - 1, lease)
    shorter_by = mirror.pass_total - page.total
    if shorter_by <= 0:
        return PageReader(PER_PAGE, mirror.pass_page - 1), page
    back = ceil(shorter_by / max(1, min(PER_PAGE, page.per_page))) + 1
    return PageReader(PER_PAGE, max(1, mirror.pass_page - back)), None


def _is_deep_enough(mirror: Mirror, page: TransactionPage) -> bool:
    """Whether a pass of a day has met a whole page that is older."""
    if mirror.pass_depth != Depth.DAY or mirror.pass_begun_at is None or not page.records:
        return False
    back_to = mirror.pass_begun_at - A_DAY_BACK
    return all(record.created_at is not None and record.created_at < back_to for record in page.records)


def _merge(lease: Lease, mirror: Mirror, place: int, step: _Step) -> None:
    with transaction.atomic(durable=True):
        lease.prove()
        merge(step.records)
        if mirror.pass_depth == Depth.COUNT:
            note_sightings()
        Mirror.objects.filter(pk=1).update(
            pass_page=place,
            pass_pages=step.pages,
            pass_total=step.total,
            pass_read=F("pass_read") + len(step.records),
        )


def _end(lease: Lease, mirror: Mirror) -> None:
    """Write down how far it went, or begin another pass if what is here is not what the service counts."""
    if mirror.pass_depth == Depth.DAY:
        _finish(lease, day_at=clock.now())
        return
    read_newest(lease)  # what came meanwhile is counted, too
    if mirror.pass_depth == Depth.COUNT:
        mark_missing(lease, mirror.pass_begun_at or clock.now())
    surplus = _surplus()
    if surplus < 0 and mirror.pass_tries < TRIES:
        begin_pass(lease, Depth.WHOLE, tries=mirror.pass_tries + 1)
    elif surplus > 0 and mirror.pass_depth == Depth.WHOLE:
        begin_pass(lease, Depth.COUNT, tries=mirror.pass_tries)
    else:
        now = clock.now()
        _finish(lease, day_at=now, whole_at=now, loaded_at=Coalesce("loaded_at", now))


def _surplus() -> int:
    """How many more transactions are here than the service counted last, without those that left its list."""
    mirror = Mirror.objects.get(pk=1)
    return mirror.rows - number_missing() - (mirror.listed or 0)


def _finish(lease: Lease, **times: Any) -> None:
    with transaction.atomic(durable=True):
        lease.prove()
        forget_sightings()
        Mirror.objects.filter(pk=1).update(pass_depth="", **times)
