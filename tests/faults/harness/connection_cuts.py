"""Where a wire is cut, and what becomes of it then."""

import threading
from dataclasses import dataclass, field
from enum import Enum, auto

GIVE_UP_AFTER = 120.0  # seconds that a stalled wire waits for its test


class Side(Enum):
    """Whose bytes are counted."""

    REQUEST = auto()
    ANSWER = auto()


class AfterCut(Enum):
    """What becomes of the wire, in both directions."""

    RESET = auto()
    CLOSE = auto()
    STALL = auto()


class ConnectionCutError(Exception):
    """The wire ends here: with a reset, or by being closed."""

    def __init__(self, then: AfterCut) -> None:
        super().__init__(then)
        self.then = then


@dataclass(eq=False)
class Cut:
    """Once, on the first connection on which the client says these words in this order, something happens.

    It happens when so many bytes have passed: of a request from the beginning of the last word on, of an answer from
    its own beginning on. Words that were said before the cut was planned do not count.
    """

    words: tuple[bytes, ...]
    side: Side
    after: int
    then: AfterCut
    reached: threading.Event = field(default_factory=threading.Event)
    freed: threading.Event = field(default_factory=threading.Event)
    goes_on: bool = False

    def wait(self, within: float = GIVE_UP_AFTER) -> None:
        """Return once the wire got there; fail after the deadline."""
        assert self.reached.wait(within), f"Nothing came as far as {self.words}, {self.side} + {self.after}"

    def go_on(self) -> None:
        """Let a stalled wire carry on as if nothing had been."""
        self.goes_on = True
        self.freed.set()

    def tear(self) -> None:
        """Let a stalled wire end with a reset; what it holds back never arrives."""
        self.freed.set()

    def end_of(self, said: bytes) -> int | None:
        """Where the last word begins in what the client said, if it said all of them."""
        place = 0
        for word in self.words:
            place = said.find(word, place)
            if place < 0:
                return None
            place += len(word)
        return place - len(self.words[-1])
