"""Ends the connections of those who send a body for too long: nothing else gives the server its thread back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

WITHIN = 5.0  # seconds for a whole body; a delivery comes in one piece
_LOOKS_EVERY = 1.0

_waiting: dict[object, tuple[float, Callable[[], None]]] = {}
_lock = threading.Lock()
_watches: list[threading.Thread] = []


@contextmanager
def hurried(hang_up: Callable[[], None]) -> Iterator[None]:
    """Whoever is still inside when the time is over is hung up on. One thread watches all those of a process."""
    key = object()
    with _lock:
        _waiting[key] = (monotonic() + WITHIN, hang_up)
        _begin_to_watch()
    try:
        yield
    finally:
        with _lock:
            del _waiting[key]


def hang_up_on_late() -> None:
    """End the connections whose time is over."""
    now = monotonic()
    with _lock:
        for until, hang_up in _waiting.values():
            if until <= now:
                hang_up()


def _begin_to_watch() -> None:
    if not _watches:
        _watches.append(threading.Thread(target=_watch, name="slow-senders", daemon=True))
        _watches[0].start()


def _watch() -> None:
    while True:
        sleep(_LOOKS_EVERY)
        hang_up_on_late()
