"""Whose turn it is to read what the service is asked for from time to time, whoever looks and however often."""

from datetime import timedelta

from backoffice.core import clock
from backoffice.ledger.models import Turn


def take_turn(what: str, *, pause: timedelta) -> bool:
    """Win the right to ask now, so that two sweepers do not both do it; the next turn comes after `pause`.

    By compare-and-set, since SQLite has no row locks, and by the database's clock: a machine whose own is ahead would
    keep the others from asking.
    """
    now = clock.now()
    turn, _ = Turn.objects.get_or_create(what=what, defaults={"next_at": now})
    if turn.next_at > now:
        return False
    return Turn.objects.filter(what=what, next_at=turn.next_at).update(next_at=now + pause) == 1
