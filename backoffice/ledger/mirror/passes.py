"""The rounds and passes of the sync.

A round reads the newest pages, a full pass the whole list (daily), a day pass the last day (hourly).

A round ends at a run of records that are known unchanged. A pass is read in steps of some pages, each merged
before the next one is read, in many short turns, and resumes where a killed process stopped. The two kinds of
pass keep separate positions, so neither delays the other. New records push others to later pages, which only
repeats some; a record can be skipped only when others disappear, and then the total shows it
(`payments_gateway/resources/transactions.py`). A full pass ends by comparing the number of rows with the
provider's count.

While the mirror is loaded for the first time, each step analyzes its tables if they grew several-fold. Autovacuum
analyzes a table up to a minute after it grew, or never where it is off. Meanwhile PostgreSQL's planner takes a table of
many thousand rows for an empty one, and queries about the chain of balances take ten times as long.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from backoffice.core import clock, fault_points
from backoffice.core.leases import Lease
from backoffice.ledger.mirror.merge import (
    MergeResult,
    clear_sightings,
    mark_missing,
    merge_records,
    merge_rows,
    missing_count,
)
from backoffice.ledger.mirror.rows import MirrorRow, UnstorableRecordError, rows_of
from backoffice.ledger.models import Mirror
from backoffice.ledger.provider_list import ListedPage, ListPosition, read_pages
from payments_gateway import GatewayError, TransactionPage, TransactionRecord

PAGE_DEADLINE = 20.0  # seconds for one page
_RECORDS_PER_STEP = 1000  # records merged in one transaction, together with the new position
KNOWN_RUN_LENGTH = 200
"""A round ends after this many unchanged records in a row.

The list is not strictly ordered, so one is not enough.
"""
GROWTH = 4  # how many times as many rows as when the table was last analyzed
MIN_ROWS = 1_000
_ROWS_COUNTED = """
    SELECT GREATEST(reltuples, 0), COALESCE(pg_stat_get_live_tuples(oid), 0)
    FROM pg_class WHERE oid = 'ledger_transaction'::regclass
"""


def read_newest(lease: Lease) -> None:
    """Run one round: merge the new and changed records at the beginning of the list.

    An interrupted round leaves `round_begun_at` set. Rows that it merged do not count as known in the next
    round, because there may be unread records below them. Raises GatewayError, UnstorableRecordError,
    LeaseLostError.
    """
    started_at, known_before = _begin_round(lease)
    known_in_a_row, newest = 0, None
    for page in read_pages(deadline=PAGE_DEADLINE, before_request=lease.renew):
        newest = newest or page.answer
        result = merge_with_lease(lease, page.records, known_before)
        known_in_a_row = _known_run(known_in_a_row, result.is_known)
        if known_in_a_row >= KNOWN_RUN_LENGTH:
            break
    _end_round(lease, started_at, newest)


def merge_with_lease(lease: Lease, records: list[TransactionRecord], known_before: datetime) -> MergeResult:
    """Merge in a durable transaction that holds the lease.

    Raises LeaseLostError, UnstorableRecordError.
    """
    with transaction.atomic(durable=True):
        lease.verify()
        return merge_records(records, known_before=known_before)


def _begin_round(lease: Lease) -> tuple[datetime, datetime]:
    """When this round begins, and before which time a row must have been first seen to count as known."""
    now = clock.now()
    with transaction.atomic(durable=True):
        lease.verify()
        Mirror.objects.filter(pk=1).update(round_begun_at=Coalesce("round_begun_at", now))
        return now, Mirror.objects.get(pk=1).round_begun_at or now


def _end_round(lease: Lease, started_at: datetime, newest: TransactionPage | None) -> None:
    reported = {"provider_count": newest.total, "provider_time": newest.answered_at} if newest else {}
    with transaction.atomic(durable=True):
        lease.verify()
        Mirror.objects.filter(pk=1).update(as_of=started_at, round_begun_at=None, **reported)


def _known_run(before: int, is_known: list[bool]) -> int:
    """The number of known records in a row at the end of what was read so far."""
    if all(is_known):
        return before + len(is_known)
    return is_known[::-1].index(False)


@dataclass
class ListStep:
    """The rows of some pages, merged in one transaction, and the position after these pages."""

    position: ListPosition
    rows: dict[str, MirrorRow] = field(default_factory=dict)
    read: int = 0  # records, including repeated ones
    pages: int = 0  # total number of pages at the provider
    is_last: bool = False

    def add(self, page: ListedPage) -> None:
        """Raises UnstorableRecordError, and then the step stays as it was."""
        self.rows |= rows_of(page.records)
        self.read += len(page.records)
        self.position, self.pages, self.is_last = page.position, page.answer.pages, page.is_last


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
    step, first_page = ListStep(start), start.page
    try:
        for page in read_pages(
            start=start, back_to=back_to, deadline=PAGE_DEADLINE, before_request=renew_lease
        ):
            step.add(page)
            is_out_of_time = time.monotonic() > until
            is_full = len(step.rows) >= _RECORDS_PER_STEP or is_out_of_time
            # The overlap page alone does not move the position.
            if step.is_last or (is_full and step.position.page != first_page):
                yield from _between_fault_points(step)
                if is_out_of_time:
                    return
                step, first_page = ListStep(step.position), step.position.page
    except (GatewayError, UnstorableRecordError):
        if step.pages:
            yield from _between_fault_points(step)
        raise


def _between_fault_points(step: ListStep) -> Iterator[ListStep]:
    fault_points.reach("mirror.read")
    yield step
    fault_points.reach("mirror.merged")


FULL_PASS_INTERVAL = timedelta(days=1)
MAX_REPEATED_PASSES = 3
PassDepth = Mirror.Depth


def is_full_pass_due(mirror: Mirror) -> bool:
    """Whether a full pass is in progress, or the last one ended at least `FULL_PASS_INTERVAL` ago."""
    is_late = (
        mirror.full_pass_ended_at is None or mirror.full_pass_ended_at <= clock.now() - FULL_PASS_INTERVAL
    )
    return bool(mirror.pass_depth) or is_late


def begin_full_pass(lease: Lease, depth: PassDepth = PassDepth.WHOLE, *, tries: int = 0) -> None:
    """Set the position to the first page and clear the sightings. Raises LeaseLostError."""
    with transaction.atomic(durable=True):
        lease.verify()
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


def continue_full_pass(lease: Lease, *, until: float, on_progress: Callable[[Mirror], object]) -> None:
    """Continue the full pass with `read_steps`, beginning one if none is in progress.

    Calls `on_progress` after every step. The next call continues after the last merged step. Raises what `read_steps`
    raises.
    """
    if not Mirror.objects.get(pk=1).pass_depth:
        begin_full_pass(lease)
    mirror = Mirror.objects.get(pk=1)
    position = ListPosition(mirror.pass_page, mirror.pass_total)
    for step in read_steps(position, until=until, renew_lease=lease.renew):
        _merge_full_pass_step(lease, step)
        analyze_if_grown()
        on_progress(Mirror.objects.get(pk=1))
        if step.is_last:
            _end_full_pass(lease, mirror)
    if position.page == 1:
        # Records added before page 1 was read are stored already, so `provider_count` must include them.
        read_newest(lease)


def _merge_full_pass_step(lease: Lease, step: ListStep) -> None:
    with transaction.atomic(durable=True):
        lease.verify()
        merge_rows(step.rows)
        Mirror.objects.filter(pk=1).update(
            pass_page=step.position.page,
            pass_pages=step.pages,
            pass_total=step.position.total,
            pass_read=F("pass_read") + step.read,
        )


def _end_full_pass(lease: Lease, mirror: Mirror) -> None:
    """Record that the pass ended, or begin another one if the row count differs from the provider's count."""
    read_newest(lease)  # include records added during the pass in the provider's count
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
    """Rows that are not marked missing, minus the provider's last count."""
    mirror = Mirror.objects.get(pk=1)
    return mirror.rows - missing_count() - (mirror.provider_count or 0)


def _record_full_pass(lease: Lease) -> None:
    """Record the end of a full pass. It covers the last day only as of its own beginning, hence `day_pass_begun_at`."""
    now = clock.now()
    with transaction.atomic(durable=True):
        lease.verify()
        clear_sightings()
        mirror = Mirror.objects.get(pk=1)
        Mirror.objects.filter(pk=1).update(
            pass_depth="",
            full_pass_ended_at=now,
            full_pass_begun_at=mirror.pass_begun_at,
            loaded_at=mirror.loaded_at or now,
            day_pass_begun_at=max(
                filter(None, (mirror.day_pass_begun_at, mirror.pass_begun_at)), default=None
            ),
        )


DAY_PASS_INTERVAL = timedelta(hours=1)
DAY_PASS_REACH = timedelta(hours=25)  # an hour more than a day, to allow for clock differences


def is_day_pass_due(mirror: Mirror) -> bool:
    """Whether a day pass is in progress, or the last completed one began at least `DAY_PASS_INTERVAL` ago.

    The first full pass starts with the last day, so it counts as a day pass.
    """
    started_at = mirror.day_pass_begun_at or mirror.pass_begun_at
    return mirror.day_begun_at is not None or (
        started_at is not None and started_at <= clock.now() - DAY_PASS_INTERVAL
    )


def continue_day_pass(lease: Lease, *, until: float, on_progress: Callable[[Mirror], object]) -> None:
    """Continue the day pass with `read_steps`, beginning one if none is in progress.

    Raises what `read_steps` raises.
    """
    mirror = Mirror.objects.get(pk=1)
    position = ListPosition(mirror.day_page, mirror.day_total) if mirror.day_begun_at else ListPosition()
    begun_at = mirror.day_begun_at or clock.now()
    for step in read_steps(position, until=until, renew_lease=lease.renew, back_to=begun_at - DAY_PASS_REACH):
        progress: dict[str, Any] = {
            "day_begun_at": begun_at,
            "day_page": step.position.page,
            "day_total": step.position.total,
        }
        if step.is_last:
            progress = {"day_begun_at": None, "day_pass_begun_at": begun_at}
        with transaction.atomic(durable=True):
            lease.verify()
            merge_rows(step.rows)
            Mirror.objects.filter(pk=1).update(**progress)
        on_progress(Mirror.objects.get(pk=1))
    if position.page == 1:
        # Records added before page 1 was read are stored already, so `provider_count` must include them.
        read_newest(lease)


def analyze_if_grown() -> bool:
    """Analyze the tables of the mirror if they grew several-fold since they last were; returns whether they did.

    Call it outside a transaction.
    """
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(_ROWS_COUNTED)
        [(analyzed, rows)] = cursor.fetchall()
        if rows < max(MIN_ROWS, GROWTH * analyzed):
            return False
        cursor.execute("SELECT ledger_analyze_mirror()")  # their owner alone may analyze them
    return True
