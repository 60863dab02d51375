"""One row after the other, so that what goes wrong with one stops nobody else."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from django.db import InterfaceError, OperationalError

logger = logging.getLogger(__name__)
PUT_OFF_SECONDS = 60.0  # so long a row that failed is left alone by this process

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
_busy: set[Hashable] = set()
_put_off: dict[Hashable, float] = {}
_lock = threading.Lock()


def for_each(
    work: Callable[[Key], Result], rows: Mapping[Key, str], *, failed: Callable[[Key, str], object]
) -> list[Result]:
    """Do the work for each row, given with the name it has in the log; what came of it where nothing went wrong.

    What nobody foresaw is logged with its traceback, `failed` tells it to people in words that hold no content, and
    that row is not tried again for a minute. A row at which another thread of this process is at work is left to it.
    That the database is away, which is of no row, is raised.
    """
    done = []
    for row, name in rows.items():
        with _Turn((work.__name__, row), name) as turn:
            if turn.is_ours:
                done.append(work(row))
        if turn.failure:
            failed(row, turn.failure)
    return done


def tell_nobody(_row: object, _failure: str) -> None:
    """Where no page shows the row: the log has it."""


def do_apart(job: Callable[[], int]) -> int | None:
    """Do a whole job in the same way, so that it stops no other; how much it did, or None if it failed lately.

    Any number of threads may do it at once.
    """
    with _Turn((job.__name__, threading.get_ident()), f"The job {job.__name__}") as turn:
        return job() if turn.is_ours else None
    return None


def put_off() -> set[Hashable]:
    """The rows that are left alone now because they failed."""
    now = time.monotonic()
    return {key for key, until in list(_put_off.items()) if until > now}


class _Turn:
    """The right to work at one row, if nobody else does and it did not fail just now. Its failure ends here."""

    def __init__(self, key: Hashable, name: str) -> None:
        self._key, self._name = key, name
        self.is_ours, self.failure = False, ""

    def __enter__(self) -> Self:
        with _lock:
            self.is_ours = self._key not in _busy | put_off()
            if self.is_ours:
                _busy.add(self._key)
                _put_off.pop(self._key, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not self.is_ours:
            return False
        is_of_this_row = isinstance(exc, Exception) and not isinstance(exc, OperationalError | InterfaceError)
        with _lock:
            _busy.discard(self._key)
            if is_of_this_row:
                _put_off[self._key] = time.monotonic() + PUT_OFF_SECONDS
        if is_of_this_row:
            self.failure = (
                f"An error in Countersign itself stands in the way ({type(exc).__name__}); the log tells it."
            )
            logger.error("%s failed, and is left alone for a minute", self._name, exc_info=exc)
        return is_of_this_row
