"""What the console says after a change, kept for the page that the browser asks for next."""

from collections import deque
from itertools import count

_KEPT = 50
_numbers = count(1)
_notes: deque[tuple[str, str]] = deque(maxlen=_KEPT)


def leave(text: str) -> str:
    """Keep a note and return its number. The number goes into an address, the text never: nobody else writes here."""
    number = str(next(_numbers))
    _notes.append((number, text))
    return number


def find(number: str) -> str:
    """The note of this number, or nothing."""
    return dict(_notes).get(number, "")
