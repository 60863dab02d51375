"""What the console says after a change, kept for the page that the browser asks for next."""

import threading
from collections import deque
from itertools import count

_KEPT = 50
_lock = threading.Lock()
_numbers = count(1)
_notes: deque[tuple[str, str]] = deque(maxlen=_KEPT)


def leave(text: str) -> str:
    """Keep a note and return its number. The number goes into an address, the text never: nobody else writes here."""
    with _lock:
        number = str(next(_numbers))
        _notes.append((number, text))
    return number


def find(number: str) -> str:
    """The note of this number, or nothing."""
    with _lock:
        return dict(_notes).get(number, "")
