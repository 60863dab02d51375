"""Keep one failing row or job from stopping the others.

A failed row or job is logged with its traceback and skipped for a minute. If the database is unavailable or
read-only, the processing of rows raises its exception, since no row is the cause; a job is tried again in the next
round, and one line a minute in the log says why.
"""

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import DataError, Error, IntegrityError, ProgrammingError, close_old_connections, connection

from backoffice.core.models import GatewayKey

logger = logging.getLogger(__name__)
POSTPONED_SECONDS = 60.0  # how long this process skips a row that failed
FAILURE_WINDOW_SECONDS = 600.0  # how long a failed row is counted
NO_JOB = "other"  # for rows that a web process or a worker processes
_READ_ONLY = "25006"  # PostgreSQL's SQLSTATE read_only_sql_transaction

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
_busy: set[Hashable] = set()
_postponed_until: dict[Hashable, float] = {}
_failures: deque[tuple[float, str]] = deque(maxlen=10_000)  # when a row failed, and in which job
_failing: dict[tuple[str, int], str] = {}  # by job and thread: the exception that ended its last round
_job: ContextVar[str] = ContextVar("job", default=NO_JOB)
_lock = threading.RLock()
_unavailable_logged_at = -math.inf


def run_each_isolated(
    work: Callable[[Key], Result], rows: Mapping[Key, str], *, failed: Callable[[Key, str], object]
) -> list[Result]:
    """Run `work` for each row (key and name for the log) and return the results of those that succeeded.

    An unexpected failure is logged with its traceback, `failed` gets the name of the exception (no content),
    and the row is skipped for a minute. A row that another thread of this process is working on is skipped
    too. An unavailable or read-only database is raised. After a broken connection the row is tried once more
    over a new one, so `work` must be safe to repeat.
    """
    done: list[Result] = []
    for row, name in rows.items():
        if not _reserve(key := (work, row)):
            continue
        try:
            done.append(_retry_if_disconnected(partial(work, row)))
        except Exception as exc:
            # Any exception: other rows must still be processed, and this failure is reported.
            if is_database_unavailable(exc):
                raise
            _postpone(key, name, exc)
            count_failed_row()
            try:
                failed(row, type(exc).__name__)
            except Error:
                logger.exception("The failure of %s could not be stored", name)
        finally:
            _busy.discard(key)
    return done


def ignore(*_args: object) -> None:
    """The argument `failed` where no page shows the row: the failure is in the log, and in `failed_rows`."""


def count_failed_row() -> None:
    """Count a row that the present job could not process."""
    with _lock:
        _failures.append((time.monotonic(), _job.get()))


def failed_rows() -> dict[str, int]:
    """How often rows failed in this process in the last ten minutes, by job. One that always fails counts each time."""
    since = time.monotonic() - FAILURE_WINDOW_SECONDS
    with _lock:
        return dict(Counter(job for at, job in _failures if at > since))


def run_isolated(
    name: str, job: Callable[[], int], *, failed: Callable[[str, str], object] = ignore
) -> int | None:
    """Run a whole job, so that its failure does not stop other jobs. Returns its count, None if it failed.

    `failed` gets its name and that of the exception, unless the database is unavailable and could not store them.

    After an unexpected failure this thread skips the job for a minute; after a failure of the database the
    next round tries again.
    """
    key = (name, threading.get_ident())
    if key in postponed():
        return None
    outer = _job.set(name)
    try:
        done = job()
    except Exception as exc:
        if log_if_database_unavailable(exc):
            return None
        if _may_be_database_failure(exc):
            logger.exception("The job %s failed in the database; the next round tries again", name)
            close_old_connections()  # the next job needs a working connection
        else:
            _postpone(key, f"The job {name}", exc)
        with _lock:
            _failing[key] = type(exc).__name__
        failed(name, type(exc).__name__)
        return None
    finally:
        _job.reset(outer)
    with _lock:
        _failing.pop(key, None)
    return done


def failing_jobs() -> dict[str, str]:
    """The jobs whose last round in this process failed, with the name of the exception."""
    with _lock:
        return {name: error for (name, _thread), error in _failing.items()}


def postponed() -> set[Hashable]:
    """The keys that are skipped now because they failed less than a minute ago. Forgets the others: a row that was
    closed meanwhile is never tried again, and its key may be large.
    """
    now = time.monotonic()
    with _lock:
        for key in [key for key, until in _postponed_until.items() if until <= now]:
            del _postponed_until[key]
        return set(_postponed_until)


def _reserve(key: Hashable) -> bool:
    """Reserve the row for this thread, unless it is being processed or postponed."""
    with _lock:
        is_available = key not in _busy | postponed()
        if is_available:
            _busy.add(key)
    return is_available


def _postpone(key: Hashable, name: str, exc: Exception) -> None:
    logger.error("%s failed and is skipped for a minute", name, exc_info=exc)
    with _lock:
        _postponed_until[key] = time.monotonic() + POSTPONED_SECONDS


def log_if_database_unavailable(exc: Exception) -> bool:
    """Log the reason if the database is unavailable or read-only, and return whether it is.

    Once a minute and without a traceback: all jobs fail every few seconds until the database is back.
    """
    global _unavailable_logged_at
    if not is_database_unavailable(exc):
        return False
    now = time.monotonic()
    with _lock:
        is_due = now - _unavailable_logged_at >= POSTPONED_SECONDS
        _unavailable_logged_at = now if is_due else _unavailable_logged_at
    if is_due:
        reason = " ".join(str(exc).split())
        logger.error(
            "The database is unavailable or read-only; all jobs try again every few seconds: %s", reason
        )
    return True


def _retry_if_disconnected(work: Callable[[], Result]) -> Result:
    """Run it again if the connection broke or led to a server that is read-only since a failover.

    A second failure is raised.
    """
    try:
        return work()
    except Error as exc:
        if not _was_disconnected(exc):
            raise
        logger.warning("The database connection was lost; retrying over a new one", exc_info=exc)
    connection.close()
    return work()


def _was_disconnected(exc: Error) -> bool:
    """Whether the connection is closed, or the server accepts no writes."""
    if getattr(exc.__cause__, "sqlstate", None) == _READ_ONLY:
        return True
    session = connection.connection
    return _may_be_database_failure(exc) and (session is None or bool(getattr(session, "closed", False)))


def _may_be_database_failure(exc: Exception) -> bool:
    """Whether the database may be the cause, and not the statement."""
    return isinstance(exc, Error) and not isinstance(exc, (IntegrityError, DataError, ProgrammingError))


def is_database_unavailable(exc: Exception) -> bool:
    """Whether the database is unavailable or read-only. It is probed, since no error class shows it reliably.

    A timeout or a deadlock raises the same class, and concerns one row. The probe is an UPDATE that changes
    no row, which both engines refuse while read-only, over a new connection: the old one may lead to a server
    that is gone.
    """
    if not _may_be_database_failure(exc):
        return False
    connection.close()
    try:
        GatewayKey.objects.filter(pk=UUID(int=0)).update(short_hash="")
    except Error:
        return True
    return False
