"""One row after the other, so that what goes wrong with one stops nobody else."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TypeVar

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
    done: list[Result] = []
    for row, name in rows.items():
        done += _done((work.__name__, row), name, partial(work, row), failed=partial(failed, row))
    return done


def tell_nobody(*_of: object) -> None:
    """Where no page shows the row: the log has it."""


def do_apart(job: Callable[[], int]) -> int | None:
    """Do a whole job in the same way, so that it stops no other; how much it did, or None if it failed lately.

    Any number of threads may do it at once.
    """
    key = job.__name__, threading.get_ident()
    done = _done(key, f"The job {job.__name__}", job, failed=tell_nobody)
    return done[0] if done else None


def put_off() -> set[Hashable]:
    """The rows that are left alone now because they failed."""
    now = time.monotonic()
    return {key for key, until in list(_put_off.items()) if until > now}


def _done(
    key: Hashable, name: str, work: Callable[[], Result], *, failed: Callable[[str], object]
) -> list[Result]:
    """What came of it; nothing if it failed, or is left alone now."""
    if not _is_taken(key):
        return []
    try:
        return [work()]
    except (OperationalError, InterfaceError):
        raise
    except Exception as exc:
        # Whatever it is: everybody else's payments go on, and people are told of this one.
        logger.exception("%s failed, and is left alone for a minute", name)
        _put_off[key] = time.monotonic() + PUT_OFF_SECONDS
        failed(f"An error in Countersign itself stands in the way ({type(exc).__name__}); the log tells it.")
        return []
    finally:
        _busy.discard(key)


def _is_taken(key: Hashable) -> bool:
    """Take the row, unless it is at work or failed just now."""
    with _lock:
        is_free = key not in _busy | put_off()
        if is_free:
            _busy.add(key)
            _put_off.pop(key, None)
    return is_free
