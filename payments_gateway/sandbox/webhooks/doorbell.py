"""Wakes the courier when there may be something to deliver. The database says what; this only says that it is time."""

import threading

_BELL = threading.Event()


def ring() -> None:
    """Let the courier look now instead of at its next round."""
    _BELL.set()


def wait(seconds: float) -> None:
    """Return at the next ring, or after that many seconds."""
    _BELL.wait(seconds)
    _BELL.clear()
