"""Whose turn it is to read what the service is asked for from time to time, whoever looks and however often.

By compare-and-set, since SQLite has no row locks, and by the database's clock: a machine whose own is ahead would keep
the others from asking.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from backoffice.core import clock
from backoffice.ledger.models import Turn


def take_turn(what: str, *, pause: timedelta) -> bool:
    """Win the right to ask now, so that two sweepers do not both do it; the next turn comes after `pause`."""
    now = clock.now()
    return _is_won(what, now, until=now + pause)


@contextmanager
def turn_held(what: str, *, at_most: timedelta) -> Iterator[bool]:
    """Keep others out while the block runs; inside is told whether the turn was won. A killed holder's ends by time."""
    now = clock.now()
    is_ours = _is_won(what, now, until=now + at_most)
    try:
        yield is_ours
    finally:
        if is_ours:
            Turn.objects.filter(what=what, next_at=now + at_most).update(next_at=clock.now())


def next_turn(what: str, *, pause: timedelta) -> datetime:
    """When to ask for whoever wants it from now on: at once, but not sooner than `pause` after the time before.

    All who want it until then share that time.
    """
    now = clock.now()
    turn, _ = Turn.objects.get_or_create(what=what, defaults={"next_at": now - pause})
    if turn.next_at > now:
        return turn.next_at
    at = max(now, turn.next_at + pause)
    Turn.objects.filter(what=what, next_at=turn.next_at).update(next_at=at)
    return at


def _is_won(what: str, now: datetime, *, until: datetime) -> bool:
    turn, _ = Turn.objects.get_or_create(what=what, defaults={"next_at": now})
    if turn.next_at > now:
        return False
    return Turn.objects.filter(what=what, next_at=turn.next_at).update(next_at=until) == 1
