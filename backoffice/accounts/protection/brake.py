"""Limits how many passwords are checked at once: each check costs a processor a tenth of a second, on purpose, and
strangers can request any number of them.

One check runs at a time in a process and few wait, so the other threads and processors serve the people who are signed
in, however many strangers try, from however many addresses.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAITING = 2  # requests of a process that may wait for a check; each holds a thread
WAIT_SECONDS = 3.0

_check = threading.Lock()
_places = threading.BoundedSemaphore(1 + WAITING)


class TooManyChecksError(Exception):
    """The password was not checked, because too many are being checked."""


@contextmanager
def password_check() -> Iterator[None]:
    """Runs the block alone. Raises TooManyChecksError at once if too many wait, or after `WAIT_SECONDS`."""
    if not _places.acquire(blocking=False):
        raise TooManyChecksError
    try:
        if not _check.acquire(timeout=WAIT_SECONDS):
            raise TooManyChecksError
        try:
            yield
        finally:
            _check.release()
    finally:
        _places.release()
