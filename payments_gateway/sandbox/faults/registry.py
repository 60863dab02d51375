"""The faults in force: which request each hits, and how often each has hit. In memory, thread-safe."""

import io
import math
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from gunicorn.http.errors import ParseException

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.api.http import MAXIMUM_BYTES, operation_at
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.definitions import (
    ANY_OPERATION,
    LIST_OPERATIONS,
    DelayFault,
    DuplicateRecordFault,
    FaultDefinition,
    HideRecordFault,
    RateLimitFault,
)

_API_PREFIX = re.compile(r"/v[24]/")

UNSPECIFIED_OPERATION = ""
"""The operation of a request that the specification does not have."""

Environ = dict[str, Any]


class IncomingRequest:
    """One request to the service."""

    def __init__(self, environ: Environ) -> None:
        self.environ = environ
        operation = operation_at(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        self.operation = operation.name if operation else UNSPECIFIED_OPERATION
        self.connection: socket.socket = environ["gunicorn.socket"]
        self._body: bytes | None = None

    def contains(self, text: str) -> bool:
        """Whether the target or the body contains this text, in UTF-8, as it stands on the wire."""
        wanted = text.encode("utf-8", "surrogatepass")
        return wanted in self.environ["RAW_URI"].encode("utf-8", "surrogateescape") or wanted in self.body()

    def body(self) -> bytes:
        """Read the body, up to a little more than the service accepts; the service will find it unread."""
        if self._body is None:
            stream = self.environ["wsgi.input"]
            try:
                self._body = stream.read(MAXIMUM_BYTES + 1)
            except (OSError, ParseException):
                self._body = b""  # the service meets the same error when it reads on
            self.environ["wsgi.input"] = io.BufferedReader(_ReplayedStream(self._body, stream))
        return self._body


class _ReplayedStream(io.RawIOBase):
    """A stream from its beginning again."""

    def __init__(self, begun: bytes, rest: Any) -> None:
        self._begun = io.BytesIO(begun)
        self._rest = rest

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from what was read before, then from the rest."""
        data = self._begun.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def is_api_request(environ: Environ) -> bool:
    """Whether the request goes to the service rather than to what the simulation adds to it."""
    return _API_PREFIX.match(environ["PATH_INFO"]) is not None


MAX_FAULTS = 200
MAX_HELD_REQUESTS = 6
"""How many requests delays hold at once: of the eight threads two stay free, so that the control API still answers."""


class RateBucket:
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
class ActiveFault:
    """A fault in force. Its counters change under the lock of the plan only."""

    id: int
    order: FaultDefinition
    since: datetime
    allowance: RateBucket | None
    hits: int = 0
    passed: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    abandoned: bool = False

    @property
    def left(self) -> int | None:
        """How many requests it will still hit; None: until it is taken away."""
        return None if self.order.times is None else self.order.times - self.hits

    def concerns(self, incoming: IncomingRequest) -> bool:
        """Whether it is about this request, as far as operation and counters say."""
        if self.left == 0 or self.order.operation not in (ANY_OPERATION, incoming.operation):
            return False
        if isinstance(self.order, HideRecordFault):
            return incoming.operation in (*LIST_OPERATIONS, UNSPECIFIED_OPERATION)
        return incoming.operation in LIST_OPERATIONS if isinstance(self.order, DuplicateRecordFault) else True

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


class FaultRegistry:
    """All faults, oldest first. `in_force` is false while none could hit anything: the fast path of every request."""

    def __init__(self) -> None:
        self.in_force = False
        self._lock = threading.Lock()
        self._held = 0
        self._faults: tuple[ActiveFault, ...] = ()
        self._ids = count(1)

    def add(self, order: FaultDefinition) -> ActiveFault:
        """Put a fault in force. RefusedError 400 when there are too many."""
        allowance = RateBucket(float(order.per_second)) if isinstance(order, RateLimitFault) else None
        with self._lock:
            if len(self._faults) >= MAX_FAULTS:
                raise RefusedError(400, f"there are {MAX_FAULTS} faults already; delete some first")
            fault = ActiveFault(next(self._ids), order, clock.now(), allowance)
            self._faults = (*self._faults, fault)
            self.in_force = True
        return fault

    def listed(self) -> tuple[ActiveFault, ...]:
        """Every fault that was not taken away, the used up ones included."""
        return self._faults

    def claim(self, incoming: IncomingRequest) -> list[ActiveFault]:
        """The faults that hit this request, now counted: any number of them, but one that answers at most."""
        # What a request contains is read outside the lock: a slow sender holds up nobody else.
        concerned = [
            fault for fault in self._faults if fault.concerns(incoming) and _is_contained(fault, incoming)
        ]
        hits: list[ActiveFault] = []
        answered = False
        with self._lock:
            for fault in concerned:
                if self._has_room_for(fault, answered=answered) and fault.take():
                    hits.append(fault)
                    answered = answered or fault.order.answers
            self._held += _count_delays(hits)
            self._settle()
        return hits

    def release(self, hits: list[ActiveFault]) -> None:
        """The request that these hit has ended."""
        with self._lock:
            self._held -= _count_delays(hits)

    def remove(self, fault_id: int) -> bool:
        """Take one fault away, and let go what it holds; False if there is none of this id."""
        with self._lock:
            removed = [fault for fault in self._faults if fault.id == fault_id]
            self._faults = tuple(fault for fault in self._faults if fault.id != fault_id)
            self._settle()
        _release_requests(removed)
        return bool(removed)

    def clear(self, *, abandon: bool) -> int:
        """Take all faults away; how many. What they hold goes on, or ends unexecuted if `abandon` is set."""
        with self._lock:
            removed, self._faults = self._faults, ()
            self._settle()
        _release_requests(removed, abandon=abandon)
        return len(removed)

    def _has_room_for(self, fault: ActiveFault, *, answered: bool) -> bool:
        if isinstance(fault.order, DelayFault):
            return self._held < MAX_HELD_REQUESTS
        return not (answered and fault.order.answers)

    def _settle(self) -> None:
        self.in_force = any(fault.left != 0 for fault in self._faults)


def _count_delays(hits: list[ActiveFault]) -> int:
    return sum(isinstance(fault.order, DelayFault) for fault in hits)


def _is_contained(fault: ActiveFault, incoming: IncomingRequest) -> bool:
    text = fault.order.containing
    return text is None or incoming.contains(text)


def _release_requests(
    faults: "list[ActiveFault] | tuple[ActiveFault, ...]", *, abandon: bool = False
) -> None:
    for fault in faults:
        fault.abandoned = abandon
        fault.ended.set()


FAULTS = FaultRegistry()
"""The faults of this process."""
