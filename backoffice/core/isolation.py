"""Process rows one by one, so that a failing row stops no other.

A failure nobody foresaw is logged with its traceback, reported through `failed`, and the row is postponed for a
minute. An unavailable or read-only database is raised, since no row is to blame for it.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import DataError, Error, IntegrityError, ProgrammingError, close_old_connections, connection

from backoffice.core.models import GatewayKey

logger = logging.getLogger(__name__)
POSTPONED_SECONDS = 60.0  # so long a row that failed is left alone by this process
_READ_ONLY = "25006"  # PostgreSQL's code, read_only_sql_transaction

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
_busy: set[Hashable] = set()
_postponed_until: dict[Hashable, float] = {}
_lock = threading.Lock()


def run_each_isolated(
    work: Callable[[Key], Result], rows: Mapping[Key, str], *, failed: Callable[[Key, str], object]
) -> list[Result]:
    """Do the work for each row, given with the name it has in the log; what came of it where nothing went wrong.

    What nobody foresaw is logged with its traceback, `failed` gets the name of the error, which holds no content, and
    that row is not tried again for a minute. A row at which another thread of this process is at work is left to it.
    That the database is away or read-only, which is of no row, is raised; a row under which a connection broke is
    tried again over a new one, so the work must bear to be done twice.
    """
    done: list[Result] = []
    for row, name in rows.items():
        one, tell = partial(_retry_if_disconnected, partial(work, row)), partial(failed, row)
        done += _run((work.__name__, row), name, one, failed=tell, is_of_no_row=_is_database_unavailable)
    return done


def ignore(*_of: object) -> None:
    """Where no page shows the row: the log has it."""


def run_isolated(job: Callable[[], int]) -> int | None:
    """Do a whole job in the same way, so that it stops no other; how much it did, or None if it failed.

    Any number of threads may do it at once. What the database does to it is logged, and the next round tries again.
    """
    key, name = (job.__name__, threading.get_ident()), f"The job {job.__name__}"
    try:
        done = _run(key, name, job, failed=ignore, is_of_no_row=_may_be_database_failure)
    except Error:
        logger.exception("The database did not allow %s; the next round tries again", job.__name__)
        close_old_connections()  # the next job needs one that works
        return None
    return done[0] if done else None


def postponed() -> set[Hashable]:
    """The rows that are left alone now because they failed."""
    now = time.monotonic()
    return {key for key, until in list(_postponed_until.items()) if until > now}


def _run(
    key: Hashable,
    name: str,
    work: Callable[[], Result],
    *,
    failed: Callable[[str], object],
    is_of_no_row: Callable[[Exception], bool],
) -> list[Result]:
    """What came of it; nothing if it failed, or is left alone now."""
    if not _acquire(key):
        return []
    try:
        return [work()]
    except Exception as exc:
        # Whatever it is: everybody else's payments go on, and people are told of this one.
        if is_of_no_row(exc):
            raise
        logger.exception("%s failed, and is left alone for a minute", name)
        _postponed_until[key] = time.monotonic() + POSTPONED_SECONDS
        _report_failure(failed, type(exc).__name__, name)
        return []
    finally:
        _busy.discard(key)


def _report_failure(failed: Callable[[str], object], error: str, name: str) -> None:
    """Tell it to people; if the database does not take even that, the log has it, and the round goes on."""
    try:
        failed(error)
    except Error:
        logger.exception("That %s failed could not be written down", name)


def _retry_if_disconnected(work: Callable[[], Result]) -> Result:
    """Do it once more if the connection broke under it, or led to a server that only reads since a fail-over.

    No row is to blame for that, unless it happens to it again.
    """
    try:
        return work()
    except Error as exc:
        if not _was_disconnected(exc):
            raise
        logger.warning("The connection to the database broke; tried again over a new one", exc_info=exc)
    connection.close()
    return work()


def _was_disconnected(exc: Error) -> bool:
    """Whether the session with the server is over, or is one with a server that takes no writes."""
    if getattr(exc.__cause__, "sqlstate", None) == _READ_ONLY:
        return True
    session = connection.connection
    return _may_be_database_failure(exc) and (session is None or bool(getattr(session, "closed", False)))


def _may_be_database_failure(exc: Exception) -> bool:
    """Whether the database may have failed, and not what was asked of it."""
    return isinstance(exc, Error) and not isinstance(exc, (IntegrityError, DataError, ProgrammingError))


def _is_database_unavailable(exc: Exception) -> bool:
    """Whether it failed because the database is away or read-only: it is asked, since no error tells that surely.

    A timeout or a deadlock is of the same class, and of one row. Asked is for a write that changes nothing, which both
    engines refuse while they only read, over a new connection: the old one may have been to a server that is gone.
    """
    if not _may_be_database_failure(exc):
        return False
    connection.close()
    try:
        GatewayKey.objects.filter(pk=UUID(int=0)).update(short_hash="")
    except Error:
        return True
    return False


def _acquire(key: Hashable) -> bool:
    """Take the row, unless it is at work or failed just now."""
    with _lock:
        is_free = key not in _busy | postponed()
        if is_free:
            _busy.add(key)
            _postponed_until.pop(key, None)
    return is_free
