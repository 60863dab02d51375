"""Where a proxied connection is cut, and what happens to it then."""

import threading
from dataclasses import dataclass, field
from enum import Enum, auto

GIVE_UP_AFTER = 120.0  # seconds that a stalled connection waits for its test


class Side(Enum):
    """The direction in which bytes are counted."""

    REQUEST = auto()
    ANSWER = auto()


class AfterCut(Enum):
    """What happens to the connection, in both directions."""

    RESET = auto()
    CLOSE = auto()
    STALL = auto()


class ConnectionCutError(Exception):
    """The connection ends here: by a reset, or by being closed."""

    def __init__(self, then: AfterCut) -> None:
        super().__init__(then)
        self.then = then


@dataclass(eq=False)
class Cut:
    """A cut that happens once, on the first connection on which the client sends these words in this order.

    It happens after so many bytes: of a request counted from the start of the last word, of a response from
    its own start. Words sent before the cut was planned do not count.
    """

    words: tuple[bytes, ...]
    side: Side
    after: int
    then: AfterCut
    reached: threading.Event = field(default_factory=threading.Event)
    freed: threading.Event = field(default_factory=threading.Event)
    goes_on: bool = False

    def wait(self, within: float = GIVE_UP_AFTER) -> None:
        """Return once the connection reaches the cut; fail after the deadline."""
        assert self.reached.wait(within), f"Nothing came as far as {self.words}, {self.side} + {self.after}"

    def go_on(self) -> None:
        """Let a stalled connection continue normally."""
        self.goes_on = True
        self.freed.set()

    def tear(self) -> None:
        """Reset a stalled connection; the bytes held back are lost."""
        self.freed.set()

    def end_of(self, sent: bytes) -> int | None:
        """Where the last word begins in what the client sent, if it sent all of them."""
        place = 0
        for word in self.words:
            place = sent.find(word, place)
            if place < 0:
                return None
            place += len(word)
        return place - len(self.words[-1])
