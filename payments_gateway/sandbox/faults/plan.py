"""The faults in force: which request each hits, and how often each has hit. In memory, safe between threads."""

import math
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.faults.orders import (
    EVERYTHING,
    LISTS,
    Delay,
    DuplicateRecord,
    HideRecordFor,
    Order,
    RateLimit,
)
from payments_gateway.sandbox.faults.requests import BEYOND, Incoming
from payments_gateway.sandbox.wire.errors import RefusedError

MOST = 200
MOST_HELD = 6
"""How many requests delays hold at once: of the eight threads two stay free, so that the control API still answers."""


class Allowance:
    """A bucket of as many requests as one second allows, and at least one."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._size = max(1.0, per_second)
        self._left = self._size
        self._filled = time.monotonic()

    def take(self) -> bool:
        """Whether one more request is within the rate; if so it is counted."""
        now = time.monotonic()
        self._left = min(self._size, self._left + (now - self._filled) * self._rate)
        self._filled = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def seconds_to_wait(self) -> int:
        """After how many whole seconds the next request may pass."""
        return max(1, math.ceil((1 - self._left) / self._rate))


@dataclass(eq=False)
class Fault:
    """A fault in force. Its counters change under the lock of the plan only."""

    id: int
    order: Order
    since: datetime
    allowance: Allowance | None
    hits: int = 0
    passed: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    abandoned: bool = False

    @property
    def left(self) -> int | None:
        """How many requests it will still hit; None: until it is taken away."""
        return None if self.order.times is None else self.order.times - self.hits

    def concerns(self, incoming: Incoming) -> bool:
        """Whether it is about this request, as far as operation and counters say."""
        if self.left == 0 or self.order.operation not in (EVERYTHING, incoming.operation):
            return False
        if isinstance(self.order, HideRecordFor):
            return incoming.operation in (*LISTS, BEYOND)
        return incoming.operation in LISTS if isinstance(self.order, DuplicateRecord) else True

    def take(self) -> bool:
        """Count one request that reaches the fault; whether it is hit."""
        if self.left == 0:
            return False
        if self.passed < self.order.skip:
            self.passed += 1
            return False
        if self.allowance and self.allowance.take():
            return False
        self.hits += 1
        return True


class Plan:
    """All faults, oldest first. `in_force` is false while none could hit anything: the fast path of every request."""

    def __init__(self) -> None:
        self.in_force = False
        self._lock = threading.Lock()
        self._held = 0
        self._faults: tuple[Fault, ...] = ()
        self._ids = count(1)

    def add(self, order: Order) -> Fault:
        """Put a fault in force. RefusedError 400 when there are too many."""
        allowance = Allowance(float(order.per_second)) if isinstance(order, RateLimit) else None
        with self._lock:
            if len(self._faults) >= MOST:
                raise RefusedError(400, f"there are {MOST} faults already; delete some first")
            fault = Fault(next(self._ids), order, clock.now(), allowance)
            self._faults = (*self._faults, fault)
            self.in_force = True
        return fault

    def listed(self) -> tuple[Fault, ...]:
        """Every fault that was not taken away, the used up ones included."""
        return self._faults

    def claim(self, incoming: Incoming) -> list[Fault]:
        """The faults that hit this request, now counted: any number of them, but one that answers at most."""
        # What a request contains is read outside the lock: a slow sender holds up nobody else.
        concerned = [
            fault for fault in self._faults if fault.concerns(incoming) and _is_contained(fault, incoming)
        ]
        hits: list[Fault] = []
        answered = False
        with self._lock:
            for fault in concerned:
                if self._has_room_for(fault, answered=answered) and fault.take():
                    hits.append(fault)
                    answered = answered or fault.order.answers
            self._held += _delays(hits)
            self._settle()
        return hits

    def release(self, hits: list[Fault]) -> None:
        """The request that these hit has ended."""
        with self._lock:
            self._held -= _delays(hits)

    def remove(self, fault_id: int) -> bool:
        """Take one fault away, and let go what it holds; False if there is none of this id."""
        with self._lock:
            removed = [fault for fault in self._faults if fault.id == fault_id]
            self._faults = tuple(fault for fault in self._faults if fault.id != fault_id)
            self._settle()
        _let_go(removed)
        return bool(removed)

    def clear(self, *, abandon: bool) -> int:
        """Take all faults away; how many. What they hold goes on, or ends unexecuted if `abandon` is set."""
        with self._lock:
            removed, self._faults = self._faults, ()
            self._settle()
        _let_go(removed, abandon=abandon)
        return len(removed)

    def _has_room_for(self, fault: Fault, *, answered: bool) -> bool:
        if isinstance(fault.order, Delay):
            return self._held < MOST_HELD
        return not (answered and fault.order.answers)

    def _settle(self) -> None:
        self.in_force = any(fault.left != 0 for fault in self._faults)


def _delays(hits: list[Fault]) -> int:
    return sum(isinstance(fault.order, Delay) for fault in hits)


def _is_contained(fault: Fault, incoming: Incoming) -> bool:
    text = fault.order.containing
    return text is None or incoming.contains(text)


def _let_go(faults: "list[Fault] | tuple[Fault, ...]", *, abandon: bool = False) -> None:
    for fault in faults:
        fault.abandoned = abandon
        fault.ended.set()


PLAN = Plan()
"""The faults of this process."""
