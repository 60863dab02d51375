"""Keep the mirror in sync with the provider's list. Called by the sweeper, by a doorbell task and by a command, also at
the same time.

Promises, once the whole list was loaded and while the provider answers:

* A new transaction is here within a minute, and at once after one of our operations settles.
* One that changes, or appears later than its time, is here within a minute among the newest two hundred, within an
  hour if it is of the last day, otherwise within a day plus the time that reading the whole list takes.
* One that leaves the provider's list is marked missing within two such readings, stays, and counts in no total.
* A page that cannot be read does not keep the rest of the list from being read.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from backoffice.core import clock
from backoffice.core.background import enqueue_on_commit
from backoffice.ledger.mirror import passes
from backoffice.ledger.mirror.lease import LEASE_DURATION, SyncLease, SyncLeaseLostError
from backoffice.ledger.mirror.passes import read_newest
from backoffice.ledger.mirror.rows import UnstorableRecordError
from backoffice.ledger.models import Mirror
from backoffice.ledger.statements.continuity import run_due_check
from payments_gateway import GatewayError

logger = logging.getLogger(__name__)

SYNC_TASK = "ledger.mirror"
ROUND_INTERVAL = timedelta(minutes=1)
TURN_SECONDS = 5.0  # seconds: so long a pass reads before others may have the turn
MAX_WAIT_SECONDS = (
    LEASE_DURATION.total_seconds() + TURN_SECONDS
)  # seconds for the turn of a command: a killed process has it for less
_POLL_SECONDS = 0.2  # seconds
OnProgress = Callable[[Mirror], object]
_PASSES = (
    (passes.is_day_pass_due, passes.continue_day_pass),
    (passes.is_full_pass_due, passes.continue_full_pass),
)


class SyncBusyError(Exception):
    """Other processes read the list all the time. The message says since when."""


def sync_if_due() -> int:
    """Read what is due: the newest pages every minute, and for some seconds on in a pass; 1 if this call did it.

    Then, as a pass takes hours, the breaks that are kept are held against some of the rows. May be called at any time
    and by several processes: one of them reads.
    """
    mirror, _ = Mirror.objects.get_or_create(pk=1)
    have_read = _sync_once() if _is_due(mirror) else 0
    run_due_check()
    return have_read


def sync_now() -> int:
    """Read the newest pages now, because something has happened at the service; 1 if this call did it.

    If another process is reading, it reads them once more as soon as it is through.
    """
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(wanted_at=clock.now())
    return _sync_once()


def request_sync() -> None:
    """Have the newest pages read by whoever comes by next, as soon as this is committed; the doorbell is rung, too."""
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(wanted_at=clock.now())
    enqueue_on_commit(SYNC_TASK, "")


def load_all(tell: OnProgress) -> None:
    """Read until the whole list is here, from where the last reading of it ended; `tell` hears of every step.

    Others may read meanwhile: then it waits for its turn, no longer than `WAITS`, and tells how far they are. Raises
    GatewayError, UnfitRecordError, TakenError; what was merged until then stays, and the next reading goes on there.
    """
    while True:
        _sync_holding(_wait_for_lease(tell), TURN_SECONDS, tell)
        mirror = Mirror.objects.get(pk=1)
        tell(mirror)
        if mirror.loaded_at and not (mirror.pass_depth or mirror.day_begun_at):
            return


def restart_full_pass() -> None:
    """Read the whole list once more, from its beginning, whoever comes by next. Raises TakenError."""
    lease = _wait_for_lease()
    passes.begin_full_pass(lease)
    lease.give_up()


def _wait_for_lease(tell: OnProgress = lambda _: None) -> SyncLease:
    """The turn, as soon as others let go of it. Raises TakenError.

    Only a command waits, with a person before it: whoever comes by tries once. No lock or transaction is open, and
    nothing tells that a lease is given up on either engine: hence it looks again every now and then.
    """
    until = time.monotonic() + MAX_WAIT_SECONDS
    while (lease := SyncLease.take()) is None:
        mirror = Mirror.objects.get(pk=1)
        tell(mirror)
        if time.monotonic() > until:
            since = mirror.lease_since or clock.now()
            raise SyncBusyError(f"Another process is reading the list, since {since:%H:%M:%S} UTC.")
        time.sleep(_POLL_SECONDS)
    return lease


def _sync_once() -> int:
    lease = SyncLease.take()
    if lease is None:
        return 0
    try:
        _sync_holding(lease, TURN_SECONDS)
    except (GatewayError, UnstorableRecordError):
        return 0  # kept for people to see, and tried again in a minute
    return 1


def _sync_holding(lease: SyncLease, seconds: float, tell: OnProgress = lambda _: None) -> None:
    """Read what is due. A problem is kept for people to see, and raised."""
    try:
        _read_due(lease, seconds, tell)
    except SyncLeaseLostError:
        logger.warning("The sync stood still for too long, and another one has taken over")
    except (GatewayError, UnstorableRecordError) as exc:
        Mirror.objects.filter(pk=1).update(problem=str(exc), problem_at=clock.now())
        raise
    finally:
        lease.give_up()


def _read_due(lease: SyncLease, seconds: float, tell: OnProgress) -> None:
    mirror = Mirror.objects.get(pk=1)
    # Before a first load has brought something, a round would read the whole list at once.
    if (mirror.rows or mirror.loaded_at) and _round_is_due(mirror):
        read_newest(lease)
    due = [read_on for is_due, read_on in _PASSES if is_due(mirror)]
    problems = [problem for read_on in due if (problem := _try_pass(read_on, lease, seconds, tell))]
    if problems:
        raise problems[0]
    Mirror.objects.filter(pk=1).update(problem="", problem_at=None)
    while not lease.give_up_unless_wanted():
        read_newest(lease)


def _try_pass(
    read_on: Callable[..., None], lease: SyncLease, seconds: float, tell: OnProgress
) -> Exception | None:
    """Read on in a pass; what goes wrong with one stops no other."""
    try:
        read_on(lease, until=time.monotonic() + seconds, tell=tell)
    except (GatewayError, UnstorableRecordError) as exc:
        return exc
    return None


def _is_due(mirror: Mirror) -> bool:
    """After a problem only once a minute, unless somebody asks."""
    if mirror.problem_at and clock.now() < mirror.problem_at + ROUND_INTERVAL:
        return mirror.wanted_at is not None and mirror.wanted_at > mirror.problem_at
    return passes.is_full_pass_due(mirror) or passes.is_day_pass_due(mirror) or _round_is_due(mirror)


def _round_is_due(mirror: Mirror) -> bool:
    is_wanted = mirror.wanted_at is not None and (mirror.as_of is None or mirror.wanted_at >= mirror.as_of)
    return is_wanted or mirror.as_of is None or mirror.as_of <= clock.now() - ROUND_INTERVAL
