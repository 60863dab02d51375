"""How long released operations of a balance will probably wait, from the pace of the last ones. For screens only."""

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from backoffice.operations.models.operations import Attempt

_COMPARED = 200  # attempts, of all balances
_LONGEST_GAP = timedelta(minutes=2)  # a longer one was idle time
_USUAL_SECONDS = 2.0  # before the first payments


def seconds_per_payment() -> "defaultdict[str, float]":
    """By currency of the balance: the median time between the starts of its last attempts, without idle time."""
    newest = Attempt.objects.filter(balance__isnull=False).order_by("-pk")
    starts = defaultdict[str, list[datetime]](list)
    for balance, started_at in newest.values_list("balance", "started_at")[:_COMPARED]:
        starts[balance or ""].append(started_at)
    gaps = {balance: _busy_gaps(times) for balance, times in starts.items()}
    return defaultdict(
        lambda: _USUAL_SECONDS, {balance: median(busy) for balance, busy in gaps.items() if busy}
    )


def _busy_gaps(newest_first: list[datetime]) -> list[float]:
    gaps = [later - earlier for later, earlier in pairwise(newest_first)]
    return [gap.total_seconds() for gap in gaps if timedelta(0) <= gap <= _LONGEST_GAP]
