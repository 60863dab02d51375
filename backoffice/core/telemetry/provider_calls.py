"""How the provider answers: calls, errors and their duration, counted by minute for all processes together.

Each process counts in memory; its reporting thread stores the counts every few seconds (`processes`). A process that is
killed loses what it had not stored. Nothing of a call is kept but its kind, its outcome and its duration.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.db.models import F, FloatField, Max, Q, Sum
from django.db.models.functions import Greatest
from django.utils import timezone

from backoffice.core.models import ProviderCallCount
from payments_gateway import (
    CredentialsError,
    GatewayError,
    OutcomeUnknownError,
    RateLimitedError,
    RejectedError,
)

KEPT = timedelta(days=1)
_TOTALS = datetime(1970, 1, 1, tzinfo=UTC)  # the minute of the rows with everything older
_MOST_PENDING = 500  # kinds, outcomes and minutes in memory while the database is away


class Call(StrEnum):
    """The kind of a call."""

    READ = "read"
    CHANGE = "change"  # sent once, such as a payment


class CallOutcome(StrEnum):
    """The outcome of a call."""

    OK = "ok"
    REJECTED = "rejected"  # the provider answered, and refused what was asked
    FAILED = "failed"  # not reached, not answered usably, or no call of ours is accepted; nothing was changed
    UNKNOWN = "unknown"  # a change whose outcome the answer does not prove


@dataclass
class _Count:
    calls: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def add(self, other: "_Count") -> None:
        self.calls += other.calls
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)


AROUND_CALLS: list[Callable[[Call], AbstractContextManager[None]]] = []
"""Context managers around each call, for traces."""
_pending: dict[tuple[datetime, Call, CallOutcome], _Count] = {}
_lock = threading.Lock()


@contextmanager
def counted(call: Call) -> Iterator[None]:
    """Counts the call of the provider that the block makes, by its outcome, and raises what it raises."""
    started = time.perf_counter()
    outcome = CallOutcome.FAILED
    try:
        with ExitStack() as stack:
            for around in AROUND_CALLS:
                stack.enter_context(around(call))
            yield
        outcome = CallOutcome.OK
    except GatewayError as exc:
        outcome = _outcome(exc)
        raise
    finally:
        _add(call, outcome, time.perf_counter() - started)


def _outcome(exc: GatewayError) -> CallOutcome:
    if isinstance(exc, OutcomeUnknownError):
        return CallOutcome.UNKNOWN
    if isinstance(exc, CredentialsError | RateLimitedError):
        return CallOutcome.FAILED  # whatever was asked, so it needs the operator and not the person who asked
    return CallOutcome.REJECTED if isinstance(exc, RejectedError) else CallOutcome.FAILED


def _add(call: Call, outcome: CallOutcome, seconds: float) -> None:
    key = (timezone.now().replace(second=0, microsecond=0), call, outcome)
    with _lock:
        if key not in _pending and len(_pending) >= _MOST_PENDING:
            return
        _pending.setdefault(key, _Count()).add(_Count(1, seconds, seconds))


def store_counts() -> None:
    """Add what this process counted to the rows that all share. Raises database errors; the counts are kept then."""
    with _lock:
        taken = dict(_pending)
        _pending.clear()
    try:
        with transaction.atomic():
            for (minute, call, outcome), count in sorted(taken.items()):
                _increase(minute, call, outcome, count)
    except BaseException:
        with _lock:
            for key, count in taken.items():
                _pending.setdefault(key, _Count()).add(count)
        raise


def _increase(minute: datetime, call: str, outcome: str, count: _Count) -> None:
    row = ProviderCallCount.objects.filter(minute=minute, call=call, outcome=outcome)
    changes = {
        "calls": F("calls") + count.calls,
        "seconds": F("seconds") + count.seconds,
        "slowest": Greatest(F("slowest"), count.slowest, output_field=FloatField()),
    }
    if not row.update(**changes):
        new = ProviderCallCount(minute=minute, call=call, outcome=outcome)
        ProviderCallCount.objects.bulk_create([new], ignore_conflicts=True)
        row.update(**changes)


@transaction.atomic
def prune_counts() -> None:
    """Add up what is older than a day. Only one process may do it at a time (`processes` holds a lease)."""
    old = ProviderCallCount.objects.filter(minute__lt=timezone.now() - KEPT, minute__gt=_TOTALS)
    sums = (
        old.order_by().values_list("call", "outcome").annotate(Sum("calls"), Sum("seconds"), Max("slowest"))
    )
    for call, outcome, calls, seconds, slowest in sums:
        _increase(_TOTALS, call, outcome, _Count(calls, seconds, slowest))
    old.delete()


@dataclass(frozen=True)
class CallStatistics:
    """Calls of one kind: how many, how many without a usable answer, and how long they took in seconds."""

    call: Call
    calls: int
    failed: int
    average: float
    slowest: float


def statistics_since(moment: datetime) -> list[CallStatistics]:
    """The statistics of each kind of call that was made since then, in one query."""
    bad = Q(outcome__in=[CallOutcome.FAILED, CallOutcome.UNKNOWN])
    rows = (
        ProviderCallCount.objects.filter(minute__gte=moment.replace(second=0, microsecond=0))
        .order_by("call")
        .values_list("call")
        .annotate(
            number=Sum("calls"),
            bad=Sum("calls", filter=bad, default=0),
            took=Sum("seconds"),
            longest=Max("slowest"),
        )
    )
    return [
        CallStatistics(Call(call), calls, failed, seconds / calls if calls else 0.0, slowest)
        for call, calls, failed, seconds, slowest in rows
    ]


def totals() -> list[tuple[Call, CallOutcome, int, float]]:
    """Calls and seconds of each kind and outcome since the installation: they never fall."""
    rows = ProviderCallCount.objects.order_by().values_list("call", "outcome")
    found = {
        (call, outcome): (calls, seconds)
        for call, outcome, calls, seconds in rows.annotate(Sum("calls"), Sum("seconds"))
    }
    return [
        (call, outcome, *found.get((call, outcome), (0, 0.0))) for call in Call for outcome in CallOutcome
    ]
