"""How long released operations will probably wait, from the pace of the last ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from django.conf import settings
from django.db.models import Count

from backoffice.core import clock
from backoffice.core.gateway import provider_profile
from backoffice.operations.delivery.balance_queue import queued_releases
from backoffice.operations.kinds.registry import KINDS, debits_a_balance
from backoffice.operations.models.operations import Attempt, Operation

OPERATIONS_PER_CODE = 25  # as many as are sent while the provider accepts a code that works several times
LONGEST_RELEASE = timedelta(hours=4)
_COMPARED = 200  # attempts, of all balances
_LONGEST_GAP = timedelta(minutes=2)  # a longer one was idle time
_USUAL_SECONDS = 2.0  # before the first payments
_SECONDS_PER_CODE = 30.0  # an authenticator shows the next code after so many


def expected_seconds(operations: Iterable[Operation]) -> int:
    """How long it will probably take to send these, none of which is released yet, behind what is released already.

    Balances are served at the same time, each one payment after the other; codes one after the other.
    """
    return _seconds_behind_queue(Counter((one.currency, one.kind) for one in operations))


def _seconds_behind_queue(to_release: Mapping[tuple[str, str], int]) -> int:
    """The same for these numbers of operations, by currency and kind."""
    pace = seconds_per_payment()
    counts = (
        queued_releases(clock.now())
        .order_by()
        .values_list("balance", "operation__kind")
        .annotate(number=Count("pk"))
    )
    waiting = Counter[tuple[str | None, str]]({(balance, kind): number for balance, kind, number in counts})
    for (currency, kind), number in to_release.items():
        waiting[currency if debits_a_balance(kind) else None, kind] += number
    balances, codes = Counter[str](), 0
    for (balance, kind), number in waiting.items():
        balances[balance or ""] += number
        codes += number * (kind in KINDS and KINDS[kind].requires_otp)
    del balances[""]
    longest = max((count * pace[balance] for balance, count in balances.items()), default=0.0)
    per_code = 1 if provider_profile().otp_single_use else OPERATIONS_PER_CODE
    return round(max(longest, codes / per_code * _SECONDS_PER_CODE))


def release_lifetime(to_release: Mapping[tuple[str, str], int]) -> timedelta:
    """How long releases of these numbers of operations, by currency and kind, may wait if they have no code.

    Twice what is expected, at least as long as one alone, at most LONGEST_RELEASE. None of the operations is released
    yet.
    """
    usual = timedelta(minutes=settings.RELEASE_LIFETIME_MINUTES)
    expected = timedelta(seconds=2 * _seconds_behind_queue(to_release))
    return min(max(usual, expected), LONGEST_RELEASE)


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
