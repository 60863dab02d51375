"""Whether this process was told to end. Long work looks between two pieces, and leaves the rest to others."""

from threading import Event

asked = Event()
"""Set by a process that ends when its work lets it (`manage.py sweep`); never in others."""


class StoppedError(Exception):
    """The process was told to end. What was begun is to be begun anew."""


def check() -> None:
    """Raises StoppedError if it was."""
    if asked.is_set():
        raise StoppedError
