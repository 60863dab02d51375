"""Keeps the mirror: the sweeper and beat come by, a doorbell rings, a person runs the command. All may do so at once.

What it promises, once the whole list was here for the first time and while the service answers:

* A new transaction is here within a minute, and at once after one of our operations settles.
* One that changes, or turns up later than its time, is here within a minute among the newest two hundred, within an
  hour if it is of the last day, and otherwise within a day and the time that reading the whole list takes.
* One that leaves the service's list is marked within two such readings, and stays.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from backoffice.core import clock
from backoffice.ledger.mirror.lease import Lease, LeaseLostError
from backoffice.ledger.mirror.newest import read_newest
from backoffice.ledger.mirror.passes import Depth, begin_pass, due_depth, go_on
from backoffice.ledger.mirror.rows import UnfitRecordError
from backoffice.ledger.mirrored import Mirror
from payments_gateway import GatewayError

logger = logging.getLogger(__name__)

TASK = "ledger.mirror"
EVERY = timedelta(minutes=1)
TURN = 5.0  # seconds: so long a pass reads before others may have the turn
_WAITS = 0.2  # seconds between two looks whether the turn is free
Tell = Callable[[Mirror], object]


def mirror_due() -> int:
    """Read what is due: the newest pages every minute, and for some seconds on in a pass; 1 if this call did it.

    May be called at any time and by several processes: one of them reads.
    """
    mirror, _ = Mirror.objects.get_or_create(pk=1)
    return _try() if _is_due(mirror) else 0


def mirror_now() -> int:
    """Read the newest pages now, because something has happened at the service; 1 if this call did it.

    If another process is reading, it reads them once more as soon as it is through.
    """
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(wanted_at=clock.now())
    return _try()


def load(tell: Tell) -> None:
    """Read until the whole list is here, from where the last reading of it ended; `tell` hears of every step.

    Others may read meanwhile: then it waits, and tells how far they are. Raises GatewayError, UnfitRecordError; what
    was merged until then stays, and the next reading goes on there.
    """
    Mirror.objects.get_or_create(pk=1)
    while True:
        is_ours = _take_turn(TURN, tell)
        mirror = Mirror.objects.get(pk=1)
        tell(mirror)
        if is_ours and mirror.loaded_at and not mirror.pass_depth:
            return
        if not is_ours:
            time.sleep(_WAITS)


def begin_again() -> None:
    """Read the whole list once more, from its beginning, whoever comes by next."""
    while (lease := Lease.take()) is None:
        time.sleep(_WAITS)
    begin_pass(lease, Depth.WHOLE)
    lease.give_up()


def _try() -> int:
    try:
        return int(_take_turn(TURN))
    except (GatewayError, UnfitRecordError):
        return 0  # kept for people to see, and tried again in a minute


def _take_turn(seconds: float, tell: Tell = lambda _: None) -> bool:
    """Read, if nobody else does. A problem is kept for people to see, and raised."""
    lease = Lease.take()
    if lease is None:
        return False
    try:
        _read(lease, seconds, tell)
    except LeaseLostError:
        logger.warning("The sync stood still for too long, and another one has taken over")
    except (GatewayError, UnfitRecordError) as exc:
        Mirror.objects.filter(pk=1).update(problem=str(exc), problem_at=clock.now())
        raise
    finally:
        lease.give_up()
    return True


def _read(lease: Lease, seconds: float, tell: Tell) -> None:
    mirror = Mirror.objects.get(pk=1)
    # Before a first load has brought something, a round would read the whole list at once.
    if (mirror.rows or mirror.loaded_at) and _round_is_due(mirror):
        read_newest(lease)
    if depth := due_depth(mirror):
        _go_deeper(lease, mirror, depth, until=time.monotonic() + seconds, tell=tell)
    Mirror.objects.filter(pk=1).update(problem="", problem_at=None)
    while not lease.give_up_unless_wanted():
        read_newest(lease)


def _go_deeper(lease: Lease, mirror: Mirror, depth: Depth, *, until: float, tell: Tell) -> None:
    if not mirror.pass_depth:
        begin_pass(lease, depth)
    go_on(lease, until=until, tell=tell)
    if not mirror.pass_depth or mirror.pass_page == 1:
        read_newest(lease)  # what came before the first page was read is here, so it has to be counted, too


def _is_due(mirror: Mirror) -> bool:
    """After a problem only once a minute, unless somebody asks."""
    if mirror.problem_at and clock.now() < mirror.problem_at + EVERY:
        return mirror.wanted_at is not None and mirror.wanted_at > mirror.problem_at
    return due_depth(mirror) is not None or _round_is_due(mirror)


def _round_is_due(mirror: Mirror) -> bool:
    is_wanted = mirror.wanted_at is not None and (mirror.as_of is None or mirror.wanted_at >= mirror.as_of)
    return is_wanted or mirror.as_of is None or mirror.as_of <= clock.now() - EVERY
