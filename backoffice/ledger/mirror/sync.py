"""Keep the mirror in sync with the provider's list.

Called by the sweeper, a background task and a management command, also concurrently.

Guarantees, once the whole list is loaded and while the provider answers:

* A new transaction is mirrored within a minute, and within `REQUEST_INTERVAL` after one of our operations settles
  or a webhook arrives.
* A transaction that changes, or appears later than its own time, is mirrored within a minute if it is among
  the newest two hundred, within an hour if it is of the last day, otherwise within a day plus the time of a
  full pass.
* A transaction that leaves the provider's list is marked missing within two full passes. It is kept, and
  counts in no total.
* A page that cannot be read does not prevent the rest of the list from being read.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from backoffice.core import clock
from backoffice.core.background import enqueue_on_commit
from backoffice.core.leases import Lease, LeaseLostError, acquire_lease, held_leases
from backoffice.core.web.formatting import stored_error
from backoffice.ledger.mirror import passes
from backoffice.ledger.mirror.passes import read_newest
from backoffice.ledger.mirror.rows import UnstorableRecordError
from backoffice.ledger.models import Mirror
from backoffice.ledger.statements.continuity import run_due_check
from payments_gateway import GatewayError

logger = logging.getLogger(__name__)

SYNC_TASK = "ledger.mirror"
SYNC_LEASE = "mirror"  # only one process at a time reads the list and writes to the mirror
LEASE_DURATION = timedelta(seconds=45)  # longer than reading one page may take
ROUND_INTERVAL = timedelta(minutes=1)
REQUEST_INTERVAL = timedelta(seconds=5)  # at least between two rounds, however many operations settle
TURN_SECONDS = 5.0  # how long a pass reads before it releases the lease
# How long a command waits for the lease: longer than a killed process can hold it.
MAX_WAIT_SECONDS = LEASE_DURATION.total_seconds() + TURN_SECONDS
_POLL_SECONDS = 0.2
OnProgress = Callable[[Mirror], object]
_PASSES = (
    (passes.is_day_pass_due, passes.continue_day_pass),
    (passes.is_full_pass_due, passes.continue_full_pass),
)


class SyncBusyError(Exception):
    """Other processes held the lease all the time. The message says since when."""


def sync_if_due() -> int:
    """Run a round every minute and a pass for `TURN_SECONDS`, whatever is due.

    Returns 1 if this call read.

    Then runs the continuity check that is due, if any. Safe to call at any time and concurrently: one process
    reads.
    """
    mirror, _ = Mirror.objects.get_or_create(pk=1)
    has_read = _sync_once() if _is_due(mirror) else 0
    run_due_check()
    return has_read


def sync_now() -> int:
    """Run a round, because something happened at the provider. Returns 1 if this call read.

    If another process is reading, or a round has just begun, the sweeper runs one within `REQUEST_INTERVAL`.
    """
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(sync_requested_at=clock.now())
    return _sync_once() if _is_due(Mirror.objects.get(pk=1)) else 0


def request_sync() -> None:
    """Request a round: recorded in the database, and enqueued as a task when this transaction commits."""
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(sync_requested_at=clock.now())
    enqueue_on_commit(SYNC_TASK, "")


def load_all(on_progress: OnProgress) -> None:
    """Read until the whole list is mirrored, continuing an earlier load; calls `on_progress` with the progress.

    If another process reads, waits for the lease up to `MAX_WAIT_SECONDS` and reports its progress. Raises
    GatewayError, UnstorableRecordError, SyncBusyError; what was merged stays, and the next load continues
    there.
    """
    while True:
        _sync_holding(_wait_for_lease(on_progress), on_progress)
        mirror = Mirror.objects.get(pk=1)
        on_progress(mirror)
        if mirror.loaded_at and not (mirror.pass_depth or mirror.day_begun_at):
            return


def restart_full_pass() -> None:
    """Begin a full pass from the first page; the next sync continues it. Raises SyncBusyError."""
    with _wait_for_lease() as lease:
        passes.begin_full_pass(lease)


def _wait_for_lease(on_progress: OnProgress = lambda _: None) -> Lease:
    """Acquire the lease, waiting until it is free. Raises SyncBusyError.

    Only a command waits; all other callers try once. It polls, without a lock or transaction, because neither
    database engine can notify a waiting process that the lease was released.
    """
    until = time.monotonic() + MAX_WAIT_SECONDS
    Mirror.objects.get_or_create(pk=1)
    while (lease := acquire_lease(SYNC_LEASE, LEASE_DURATION)) is None:
        on_progress(Mirror.objects.get(pk=1))
        if time.monotonic() > until:
            since = next(iter(held_leases(SYNC_LEASE).values()), clock.now())
            raise SyncBusyError(f"Another process has been reading the list since {since:%H:%M:%S} UTC.")
        time.sleep(_POLL_SECONDS)
    return lease


def _sync_once() -> int:
    lease = acquire_lease(SYNC_LEASE, LEASE_DURATION)
    if lease is None:
        return 0
    try:
        _sync_holding(lease)
    except (GatewayError, UnstorableRecordError):
        return 0  # stored for display, and retried in a minute
    return 1


def _sync_holding(lease: Lease, on_progress: OnProgress = lambda _: None) -> None:
    """Read what is due, and release the lease. An error is stored for display, and raised.

    Then runs another round if one was requested meanwhile and is due. This is checked after the release: whoever
    requests one later finds the lease free.
    """
    _read(lease, partial(_read_due, lease, on_progress))
    while _is_requested(Mirror.objects.get(pk=1)):
        next_lease = acquire_lease(SYNC_LEASE, LEASE_DURATION)
        if next_lease is None:
            return
        _read(next_lease, partial(read_newest, next_lease))


def _read(lease: Lease, read: Callable[[], None]) -> None:
    try:
        with lease:
            read()
            Mirror.objects.filter(pk=1).update(error={}, error_at=None)
    except LeaseLostError:
        logger.warning("The sync lost its lease because it was too slow; another process continues it")
    except (GatewayError, UnstorableRecordError) as exc:
        Mirror.objects.filter(pk=1).update(error=stored_error(exc), error_at=clock.now())
        raise


def _read_due(lease: Lease, on_progress: OnProgress) -> None:
    mirror = Mirror.objects.get(pk=1)
    # Before the first load has stored anything, a round would read the whole list in one go.
    if (mirror.rows or mirror.loaded_at) and _round_is_due(mirror):
        read_newest(lease)
    due_passes = [continue_pass for is_due, continue_pass in _PASSES if is_due(mirror)]
    errors = [
        error for continue_pass in due_passes if (error := _try_pass(continue_pass, lease, on_progress))
    ]
    if errors:
        raise errors[0]


def _try_pass(continue_pass: Callable[..., None], lease: Lease, on_progress: OnProgress) -> Exception | None:
    """Continue one pass, and return its error, so that an error in one pass does not prevent the other."""
    try:
        continue_pass(lease, until=time.monotonic() + TURN_SECONDS, on_progress=on_progress)
    except (GatewayError, UnstorableRecordError) as exc:
        return exc
    return None


def _is_due(mirror: Mirror) -> bool:
    """Whether anything is due. After an error only once a minute, unless a round was requested since."""
    if mirror.error_at and clock.now() < mirror.error_at + ROUND_INTERVAL:
        return mirror.sync_requested_at is not None and mirror.sync_requested_at > mirror.error_at
    return passes.is_full_pass_due(mirror) or passes.is_day_pass_due(mirror) or _round_is_due(mirror)


def _round_is_due(mirror: Mirror) -> bool:
    is_late = mirror.as_of is None or mirror.as_of <= clock.now() - ROUND_INTERVAL
    return is_late or _is_requested(mirror)


def _is_requested(mirror: Mirror) -> bool:
    """Whether a round was requested since the last successful one began, which is `REQUEST_INTERVAL` ago."""
    if mirror.sync_requested_at is None or mirror.as_of is None:
        return mirror.sync_requested_at is not None
    return mirror.sync_requested_at >= mirror.as_of and clock.now() >= mirror.as_of + REQUEST_INTERVAL
