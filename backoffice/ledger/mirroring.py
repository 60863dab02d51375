"""Keeps the mirror: the sweeper and beat come by, a doorbell rings, a person runs the command. All may do so at once.

What it promises, once the whole list was here for the first time and while the service answers:

* A new transaction is here within a minute, and at once after one of our operations settles.
* One that changes, or turns up later than its time, is here within a minute among the newest two hundred, within an
  hour if it is of the last day, and otherwise within a day and the time that reading the whole list takes.
* One that leaves the service's list is marked within two such readings, stays, and counts in no sum.
* What cannot be read in one place keeps nothing of the others from being read.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from backoffice.core import clock
from backoffice.core.queue import ring
from backoffice.ledger.books.checking import check_due
from backoffice.ledger.mirror import day, passes
from backoffice.ledger.mirror.lease import LASTS, Lease, LeaseLostError
from backoffice.ledger.mirror.newest import read_newest
from backoffice.ledger.mirror.rows import UnfitRecordError
from backoffice.ledger.mirrored import Mirror
from payments_gateway import GatewayError

logger = logging.getLogger(__name__)

TASK = "ledger.mirror"
EVERY = timedelta(minutes=1)
TURN = 5.0  # seconds: so long a pass reads before others may have the turn
WAITS = LASTS.total_seconds() + TURN  # seconds for the turn of a command: a killed process has it for less
_LOOKS_EVERY = 0.2  # seconds
Tell = Callable[[Mirror], object]
_PASSES = ((day.is_due, day.read_on), (passes.is_due, passes.read_on))


class TakenError(Exception):
    """Other processes read the list all the time. The message says since when."""


def mirror_due() -> int:
    """Read what is due: the newest pages every minute, and for some seconds on in a pass; 1 if this call did it.

    Then, as a pass takes hours, the breaks that are kept are held against some of the rows. May be called at any time
    and by several processes: one of them reads.
    """
    mirror, _ = Mirror.objects.get_or_create(pk=1)
    have_read = _try() if _is_due(mirror) else 0
    check_due()
    return have_read


def mirror_now() -> int:
    """Read the newest pages now, because something has happened at the service; 1 if this call did it.

    If another process is reading, it reads them once more as soon as it is through.
    """
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(wanted_at=clock.now())
    return _try()


def ask_for_round() -> None:
    """Have the newest pages read by whoever comes by next, as soon as this is committed; the doorbell is rung, too."""
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(wanted_at=clock.now())
    ring(TASK, "")


def load(tell: Tell) -> None:
    """Read until the whole list is here, from where the last reading of it ended; `tell` hears of every step.

    Others may read meanwhile: then it waits for its turn, no longer than `WAITS`, and tells how far they are. Raises
    GatewayError, UnfitRecordError, TakenError; what was merged until then stays, and the next reading goes on there.
    """
    while True:
        _take_turn(_awaited_lease(tell), TURN, tell)
        mirror = Mirror.objects.get(pk=1)
        tell(mirror)
        if mirror.loaded_at and not (mirror.pass_depth or mirror.day_begun_at):
            return


def begin_again() -> None:
    """Read the whole list once more, from its beginning, whoever comes by next. Raises TakenError."""
    lease = _awaited_lease()
    passes.begin_pass(lease)
    lease.give_up()


def _awaited_lease(tell: Tell = lambda _: None) -> Lease:
    """The turn, as soon as others let go of it. Raises TakenError.

    Only a command waits, with a person before it: whoever comes by tries once. No lock or transaction is open, and
    nothing tells that a lease is given up on either engine: hence it looks again every now and then.
    """
    until = time.monotonic() + WAITS
    while (lease := Lease.take()) is None:
        mirror = Mirror.objects.get(pk=1)
        tell(mirror)
        if time.monotonic() > until:
            since = mirror.lease_since or clock.now()
            raise TakenError(f"Another process is reading the list, since {since:%H:%M:%S} UTC.")
        time.sleep(_LOOKS_EVERY)
    return lease


def _try() -> int:
    lease = Lease.take()
    if lease is None:
        return 0
    try:
        _take_turn(lease, TURN)
    except (GatewayError, UnfitRecordError):
        return 0  # kept for people to see, and tried again in a minute
    return 1


def _take_turn(lease: Lease, seconds: float, tell: Tell = lambda _: None) -> None:
    """Read what is due. A problem is kept for people to see, and raised."""
    try:
        _read(lease, seconds, tell)
    except LeaseLostError:
        logger.warning("The sync stood still for too long, and another one has taken over")
    except (GatewayError, UnfitRecordError) as exc:
        Mirror.objects.filter(pk=1).update(problem=str(exc), problem_at=clock.now())
        raise
    finally:
        lease.give_up()


def _read(lease: Lease, seconds: float, tell: Tell) -> None:
    mirror = Mirror.objects.get(pk=1)
    # Before a first load has brought something, a round would read the whole list at once.
    if (mirror.rows or mirror.loaded_at) and _round_is_due(mirror):
        read_newest(lease)
    due = [read_on for is_due, read_on in _PASSES if is_due(mirror)]
    problems = [problem for read_on in due if (problem := _tried(read_on, lease, seconds, tell))]
    if problems:
        raise problems[0]
    Mirror.objects.filter(pk=1).update(problem="", problem_at=None)
    while not lease.give_up_unless_wanted():
        read_newest(lease)


def _tried(read_on: Callable[..., None], lease: Lease, seconds: float, tell: Tell) -> Exception | None:
    """Read on in a pass; what goes wrong with one stops no other."""
    try:
        read_on(lease, until=time.monotonic() + seconds, tell=tell)
    except (GatewayError, UnfitRecordError) as exc:
        return exc
    return None


def _is_due(mirror: Mirror) -> bool:
    """After a problem only once a minute, unless somebody asks."""
    if mirror.problem_at and clock.now() < mirror.problem_at + EVERY:
        return mirror.wanted_at is not None and mirror.wanted_at > mirror.problem_at
    return passes.is_due(mirror) or day.is_due(mirror) or _round_is_due(mirror)


def _round_is_due(mirror: Mirror) -> bool:
    is_wanted = mirror.wanted_at is not None and (mirror.as_of is None or mirror.wanted_at >= mirror.as_of)
    return is_wanted or mirror.as_of is None or mirror.as_of <= clock.now() - EVERY
