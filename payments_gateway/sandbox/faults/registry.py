"""The active faults: which request each hits, and how often each has hit. In memory, thread-safe."""

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
"""The operation of a request that is not in the specification."""

Environ = dict[str, Any]


class IncomingRequest:
    """One request to the simulated provider."""

    def __init__(self, environ: Environ) -> None:
        self.environ = environ
        operation = operation_at(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        self.operation = operation.name if operation else UNSPECIFIED_OPERATION
        self.connection: socket.socket = environ["gunicorn.socket"]
        self._body: bytes | None = None

    def contains(self, text: str) -> bool:
        """Whether the raw target or body contains this text, in UTF-8."""
        encoded = text.encode("utf-8", "surrogatepass")
        return encoded in self.environ["RAW_URI"].encode("utf-8", "surrogateescape") or encoded in self.body()

    def body(self) -> bytes:
        """Read the body, up to a little more than the maximum size. The application can still read it."""
        if self._body is None:
            stream = self.environ["wsgi.input"]
            try:
                self._body = stream.read(MAXIMUM_BYTES + 1)
            except (OSError, ParseException):
                self._body = b""  # the application gets the same error when it reads on
            self.environ["wsgi.input"] = io.BufferedReader(_ReplayedStream(self._body, stream))
        return self._body


class _ReplayedStream(io.RawIOBase):
    """A stream that starts again with the bytes already read."""

    def __init__(self, begun: bytes, rest: Any) -> None:
        self._begun = io.BytesIO(begun)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the bytes already read, then from the rest."""
        data = self._begun.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def is_api_request(environ: Environ) -> bool:
    """Whether the request goes to the provider's API rather than to the control API."""
    return _API_PREFIX.match(environ["PATH_INFO"]) is not None


MAX_FAULTS = 200
MAX_HELD_REQUESTS = 6
"""Maximum number of delayed requests: two of the eight threads remain free for the control API."""


class RateBucket:
    """A token bucket that holds the requests of one second, and at least one."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._size = max(1.0, per_second)
        self._left = self._size
        self._filled = time.monotonic()

    def take(self) -> bool:
        """Count one more request if it is within the rate; False if it is not."""
        now = time.monotonic()
        self._left = min(self._size, self._left + (now - self._filled) * self._rate)
        self._filled = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def seconds_to_wait(self) -> int:
        """Whole seconds until the next request is allowed."""
        return max(1, math.ceil((1 - self._left) / self._rate))


@dataclass(eq=False)
class ActiveFault:
    """An active fault. Its counters change under the lock of the registry only."""

    id: int
    definition: FaultDefinition
    since: datetime
    allowance: RateBucket | None
    hits: int = 0
    passed: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    abandoned: bool = False

    @property
    def left(self) -> int | None:
        """How many requests it will still hit; None: until it is removed."""
        return None if self.definition.times is None else self.definition.times - self.hits

    def matches(self, incoming: IncomingRequest) -> bool:
        """Whether the fault applies to this request, by operation and remaining count."""
        if self.left == 0 or self.definition.operation not in (ANY_OPERATION, incoming.operation):
            return False
        if isinstance(self.definition, HideRecordFault):
            return incoming.operation in (*LIST_OPERATIONS, UNSPECIFIED_OPERATION)
        return (
            incoming.operation in LIST_OPERATIONS
            if isinstance(self.definition, DuplicateRecordFault)
            else True
        )

    def take(self) -> bool:
        """Count one request that matches the fault. True if the fault hits it."""
        if self.left == 0:
            return False
        if self.passed < self.definition.skip:
            self.passed += 1
            return False
        if self.allowance and self.allowance.take():
            return False
        self.hits += 1
        return True


class FaultRegistry:
    """All faults, oldest first. `has_faults` is false if none can hit anything: the fast path of every request."""

    def __init__(self) -> None:
        self.has_faults = False
        self._lock = threading.Lock()
        self._held = 0
        self._faults: tuple[ActiveFault, ...] = ()
        self._ids = count(1)

    def add(self, order: FaultDefinition) -> ActiveFault:
        """Activate a fault. RefusedError 400 when there are too many."""
        allowance = RateBucket(float(order.per_second)) if isinstance(order, RateLimitFault) else None
        with self._lock:
            if len(self._faults) >= MAX_FAULTS:
                raise RefusedError(400, f"there are {MAX_FAULTS} faults already; delete some first")
            fault = ActiveFault(next(self._ids), order, clock.now(), allowance)
            self._faults = (*self._faults, fault)
            self.has_faults = True
        return fault

    def listed(self) -> tuple[ActiveFault, ...]:
        """Every fault that was not removed, including exhausted ones."""
        return self._faults

    def claim(self, incoming: IncomingRequest) -> list[ActiveFault]:
        """The faults that hit this request, now counted; at most one of them produces the response."""
        # The body is read outside the lock, so that a slow client does not block other requests.
        matching = [
            fault for fault in self._faults if fault.matches(incoming) and _is_contained(fault, incoming)
        ]
        hits: list[ActiveFault] = []
        answered = False
        with self._lock:
            for fault in matching:
                if self._has_room_for(fault, answered=answered) and fault.take():
                    hits.append(fault)
                    answered = answered or fault.definition.answers
            self._held += _is_held(hits)
            self._update_has_faults()
        return hits

    def release(self, hits: list[ActiveFault]) -> None:
        """End the request that these faults hit."""
        with self._lock:
            self._held -= _is_held(hits)

    def remove(self, fault_id: int) -> bool:
        """Remove a fault and release the requests it holds; False if there is none with this id."""
        with self._lock:
            removed = [fault for fault in self._faults if fault.id == fault_id]
            self._faults = tuple(fault for fault in self._faults if fault.id != fault_id)
            self._update_has_faults()
        _release_requests(removed)
        return bool(removed)

    def clear(self, *, abandon: bool) -> int:
        """Remove all faults and return their number.

        The requests they hold continue, or end unexecuted if `abandon` is set.
        """
        with self._lock:
            removed, self._faults = self._faults, ()
            self._update_has_faults()
        _release_requests(removed, abandon=abandon)
        return len(removed)

    def _has_room_for(self, fault: ActiveFault, *, answered: bool) -> bool:
        if isinstance(fault.definition, DelayFault):
            return self._held < MAX_HELD_REQUESTS
        return not (answered and fault.definition.answers)

    def _update_has_faults(self) -> None:
        self.has_faults = any(fault.left != 0 for fault in self._faults)


def _is_held(hits: list[ActiveFault]) -> bool:
    """Whether a request that these faults hit waits, and takes one of the places of waiting requests."""
    return any(isinstance(fault.definition, DelayFault) for fault in hits)


def _is_contained(fault: ActiveFault, incoming: IncomingRequest) -> bool:
    text = fault.definition.containing
    return text is None or incoming.contains(text)


def _release_requests(
    faults: "list[ActiveFault] | tuple[ActiveFault, ...]", *, abandon: bool = False
) -> None:
    for fault in faults:
        fault.abandoned = abandon
        fault.ended.set()


FAULTS = FaultRegistry()
"""The faults of this process."""
