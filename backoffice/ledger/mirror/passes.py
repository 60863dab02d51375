"""A pass: reads the whole list, page by page over many turns; a killed process goes on where it was.

New records come at the list's beginning and push the others towards later pages, which only repeats some. A record
can slip past to a page already read only when others vanish, and then the total tells (`payments_gateway/_pages.py`).
In the end it proves itself: as many records must be here as the service counts.
"""

from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import F

from backoffice.core import clock
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.merging import merge_rows
from backoffice.ledger.mirror.missing import forget_sightings, mark_missing, number_missing
from backoffice.ledger.mirror.newest import read_newest
from backoffice.ledger.mirror.steps import Place, Step, steps
from backoffice.ledger.mirrored import Mirror

EVERY = timedelta(days=1)
TRIES = 3
Depth = Mirror.Depth


def is_due(mirror: Mirror) -> bool:
    """Whether one is under way, or the last one ended a day ago."""
    is_late = mirror.whole_at is None or mirror.whole_at <= clock.now() - EVERY
    return bool(mirror.pass_depth) or is_late


def begin_pass(lease: Lease, depth: Depth = Depth.WHOLE, *, tries: int = 0) -> None:
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


def read_on(lease: Lease, *, until: float, tell: Callable[[Mirror], object]) -> None:
    """Read on in the pass as `steps` does; one begins if none is under way. Raises what that raises.

    `tell` hears of every step. Whoever comes next goes on behind the last step that was merged.
    """
    if not Mirror.objects.get(pk=1).pass_depth:
        begin_pass(lease)
    mirror = Mirror.objects.get(pk=1)
    place = Place(mirror.pass_page, mirror.pass_total)
    for step in steps(place, lease, until=until, is_enough=lambda _: False):
        _merge(lease, step)
        tell(Mirror.objects.get(pk=1))
        if step.is_last:
            _end(lease, mirror)
    if place.page == 1:
        read_newest(lease)  # what came before the first page was read is here, so it has to be counted, too


def _merge(lease: Lease, step: Step) -> None:
    with transaction.atomic(durable=True):
        lease.prove()
        merge_rows(step.rows)
        Mirror.objects.filter(pk=1).update(
            pass_page=step.place.page,
            pass_pages=step.pages,
            pass_total=step.place.total,
            pass_read=F("pass_read") + step.read,
        )


def _end(lease: Lease, mirror: Mirror) -> None:
    """Write down that it ended, or begin another pass if what is here is not what the service counts."""
    read_newest(lease)  # what came meanwhile is counted, too
    if mirror.pass_depth == Depth.COUNT:
        mark_missing(lease, mirror.pass_begun_at or clock.now())
    surplus = _surplus()
    if surplus < 0 and mirror.pass_tries < TRIES:
        begin_pass(lease, Depth.WHOLE, tries=mirror.pass_tries + 1)
    elif surplus > 0 and mirror.pass_depth == Depth.WHOLE:
        begin_pass(lease, Depth.COUNT, tries=mirror.pass_tries)
    else:
        _finish(lease)


def _surplus() -> int:
    """How many more transactions are here than the service counted last, without those that left its list."""
    mirror = Mirror.objects.get(pk=1)
    return mirror.rows - number_missing() - (mirror.listed or 0)


def _finish(lease: Lease) -> None:
    """Of the last day it says what stood there when it began, and no more (`day`)."""
    now = clock.now()
    with transaction.atomic(durable=True):
        lease.prove()
        forget_sightings()
        mirror = Mirror.objects.get(pk=1)
        Mirror.objects.filter(pk=1).update(
            pass_depth="",
            whole_at=now,
            whole_begun_at=mirror.pass_begun_at,
            loaded_at=mirror.loaded_at or now,
            day_at=max(filter(None, (mirror.day_at, mirror.pass_begun_at)), default=None),
        )
