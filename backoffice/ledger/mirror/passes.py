"""What the sync reads: the newest pages (a round), the whole list once a day (a full pass), the last day once an hour.

A round ends at a run of records that are known unchanged. A pass runs over many turns and resumes where a killed
process stopped; the two passes keep separate positions, so neither holds up the other. New records push others to
later pages, which only repeats some; a record can be skipped only when others vanish, and then the total says so
(`payments_gateway/resources/transactions.py`). A full pass ends by comparing the number of rows with the provider's
count.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from backoffice.core import clock
from backoffice.ledger.mirror.lease import SyncLease
from backoffice.ledger.mirror.list_reader import PER_PAGE, ListPosition, ListStep, read_page, read_steps
from backoffice.ledger.mirror.merge import (
    MergeResult,
    clear_sightings,
    mark_missing,
    merge_records,
    merge_rows,
    missing_count,
)
from backoffice.ledger.models import Mirror
from payments_gateway import PageReader, TransactionPage, TransactionRecord

KNOWN_RUN_LENGTH = 200
"""So many records in a row must be here as they are told: the list is not strictly in order."""


def read_newest(lease: SyncLease) -> None:
    """Merge everything that is new at the beginning of the list, and what changed there.

    A round that is broken off leaves its beginning behind, and what it merged is no known stretch for the next one:
    below it may be records that nobody has read. Raises GatewayError, UnfitRecordError, LeaseLostError.
    """
    began, known_before = _begin_round(lease)
    reader, in_a_row, newest = PageReader(PER_PAGE), 0, None
    while not reader.is_done and in_a_row < KNOWN_RUN_LENGTH:
        page = read_page(reader.number, lease)
        newest = newest or page
        merged = merge_with_lease(lease, reader.take(page), known_before)
        in_a_row = _known_run(in_a_row, merged.is_known)
    _end_round(lease, began, newest)


def merge_with_lease(
    lease: SyncLease, records: list[TransactionRecord], known_before: datetime
) -> MergeResult:
    """Merge, if the lease is held still. Raises LeaseLostError, UnfitRecordError."""
    with transaction.atomic(durable=True):
        lease.prove()
        return merge_records(records, known_before=known_before)


def _begin_round(lease: SyncLease) -> tuple[datetime, datetime]:
    """When this round begins, and before which moment a row must have been here to be known."""
    now = clock.now()
    mine = Mirror.objects.filter(pk=1, lease_holder=lease.holder)
    mine.update(round_begun_at=Coalesce("round_begun_at", now))
    known_before = mine.values_list("round_begun_at", flat=True).first()
    return now, known_before or now


def _end_round(lease: SyncLease, began: datetime, newest: TransactionPage | None) -> None:
    told = {"listed": newest.total, "service_time": newest.answered_at} if newest else {}
    Mirror.objects.filter(pk=1, lease_holder=lease.holder).update(as_of=began, round_begun_at=None, **told)


def _known_run(before: int, is_known: list[bool]) -> int:
    """How many known records in a row there are now at the end of what was read."""
    if all(is_known):
        return before + len(is_known)
    return is_known[::-1].index(False)


FULL_PASS_INTERVAL = timedelta(days=1)
MAX_REPEATED_PASSES = 3
PassDepth = Mirror.Depth


def is_full_pass_due(mirror: Mirror) -> bool:
    """Whether one is under way, or the last one ended a day ago."""
    is_late = mirror.whole_at is None or mirror.whole_at <= clock.now() - FULL_PASS_INTERVAL
    return bool(mirror.pass_depth) or is_late


def begin_full_pass(lease: SyncLease, depth: PassDepth = PassDepth.WHOLE, *, tries: int = 0) -> None:
    """Start at the first page. Raises LeaseLostError."""
    with transaction.atomic(durable=True):
        lease.prove()
        clear_sightings()
        Mirror.objects.filter(pk=1).update(
            pass_depth=depth,
            pass_begun_at=clock.now(),
            pass_page=1,
            pass_pages=0,
            pass_total=0,
            pass_read=0,
            pass_tries=tries,
        )


def continue_full_pass(lease: SyncLease, *, until: float, tell: Callable[[Mirror], object]) -> None:
    """Read on in the pass as `steps` does; one begins if none is under way. Raises what that raises.

    `tell` hears of every step. Whoever comes next goes on behind the last step that was merged.
    """
    if not Mirror.objects.get(pk=1).pass_depth:
        begin_full_pass(lease)
    mirror = Mirror.objects.get(pk=1)
    place = ListPosition(mirror.pass_page, mirror.pass_total)
    for step in read_steps(place, lease, until=until, is_enough=lambda _: False):
        _merge_full_pass_step(lease, step)
        tell(Mirror.objects.get(pk=1))
        if step.is_last:
            _end_full_pass(lease, mirror)
    if place.page == 1:
        read_newest(lease)  # what came before the first page was read is here, so it has to be counted, too


def _merge_full_pass_step(lease: SyncLease, step: ListStep) -> None:
    with transaction.atomic(durable=True):
        lease.prove()
        merge_rows(step.rows)
        Mirror.objects.filter(pk=1).update(
            pass_page=step.place.page,
            pass_pages=step.pages,
            pass_total=step.place.total,
            pass_read=F("pass_read") + step.read,
        )


def _end_full_pass(lease: SyncLease, mirror: Mirror) -> None:
    """Write down that it ended, or begin another pass if what is here is not what the service counts."""
    read_newest(lease)  # what came meanwhile is counted, too
    if mirror.pass_depth == PassDepth.COUNT:
        mark_missing(lease, mirror.pass_begun_at or clock.now())
    surplus = _surplus()
    if surplus < 0 and mirror.pass_tries < MAX_REPEATED_PASSES:
        begin_full_pass(lease, PassDepth.WHOLE, tries=mirror.pass_tries + 1)
    elif surplus > 0 and mirror.pass_depth == PassDepth.WHOLE:
        begin_full_pass(lease, PassDepth.COUNT, tries=mirror.pass_tries)
    else:
        _record_full_pass(lease)


def _surplus() -> int:
    """How many more transactions are here than the service counted last, without those that left its list."""
    mirror = Mirror.objects.get(pk=1)
    return mirror.rows - missing_count() - (mirror.listed or 0)


def _record_full_pass(lease: SyncLease) -> None:
    """Of the last day it says what stood there when it began, and no more (`day`)."""
    now = clock.now()
    with transaction.atomic(durable=True):
        lease.prove()
        clear_sightings()
        mirror = Mirror.objects.get(pk=1)
        Mirror.objects.filter(pk=1).update(
            pass_depth="",
            whole_at=now,
            whole_begun_at=mirror.pass_begun_at,
            loaded_at=mirror.loaded_at or now,
            day_at=max(filter(None, (mirror.day_at, mirror.pass_begun_at)), default=None),
        )


DAY_PASS_INTERVAL = timedelta(hours=1)
DAY_PASS_REACH = timedelta(hours=25)  # an hour more than a day, for clocks that disagree


def is_day_pass_due(mirror: Mirror) -> bool:
    """Whether it is under way, or the last one that came to its end began an hour ago.

    The first reading of the whole list begins with the last day, so it stands for one.
    """
    began = mirror.day_at or mirror.pass_begun_at
    return mirror.day_begun_at is not None or (began is not None and began <= clock.now() - DAY_PASS_INTERVAL)


def continue_day_pass(lease: SyncLease, *, until: float, tell: Callable[[Mirror], object]) -> None:
    """Read on in it as `steps` does, from its beginning if none is under way. Raises what that raises."""
    mirror = Mirror.objects.get(pk=1)
    place = ListPosition(mirror.day_page, mirror.day_total) if mirror.day_begun_at else ListPosition()
    begun_at = mirror.day_begun_at or clock.now()
    for step in read_steps(place, lease, until=until, is_enough=_is_older_than(begun_at - DAY_PASS_REACH)):
        reached: dict[str, Any] = {
            "day_begun_at": begun_at,
            "day_page": step.place.page,
            "day_total": step.place.total,
        }
        if step.is_last:
            reached = {"day_begun_at": None, "day_at": begun_at}
        with transaction.atomic(durable=True):
            lease.prove()
            merge_rows(step.rows)
            Mirror.objects.filter(pk=1).update(**reached)
        tell(Mirror.objects.get(pk=1))
    if place.page == 1:
        read_newest(lease)  # what came before the first page was read is here, so it has to be counted, too


def _is_older_than(moment: datetime) -> Callable[[TransactionPage], bool]:
    """Whether a whole page is: the list is not strictly in order."""

    def is_enough(page: TransactionPage) -> bool:
        times = [record.created_at for record in page.records]
        return bool(times) and all(time is not None and time < moment for time in times)

    return is_enough
