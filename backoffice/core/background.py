"""Celery messages sent after the commit, reads in a thread, and the stop flag of long-running work.

The database is the record of what is to be done. A lost message costs seconds, because the sweeper finds the
work.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Event
from typing import TypeVar

from django.db import connections, transaction
from kombu.exceptions import OperationalError

from backoffice.celery import app

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


def enqueue_on_commit(task: str, identifier: object) -> None:
    """Send a Celery task for this row once the current transaction has committed.

    Never raises because of the broker: if the message is lost, the sweeper finds the work within seconds.
    """
    transaction.on_commit(partial(_send, task, str(identifier)))


def _send(task: str, identifier: str) -> None:
    try:
        app.send_task(task, args=[identifier])
    except (OperationalError, OSError) as exc:
        logger.warning("The broker cannot be reached (%s); the sweeper will run %s", type(exc).__name__, task)


def start_thread(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin this in another thread, and return a function that waits for its result. It raises what `work` raises."""
    with_context = copy_context()
    threads = ThreadPoolExecutor(1)
    future = threads.submit(lambda: with_context.run(_without_connections, work))
    threads.shutdown(wait=False)
    return future.result


def _without_connections(work: Callable[[], Result]) -> Result:
    """Leave no database connection of the thread open."""
    try:
        return work()
    finally:
        connections.close_all()


stop_requested = Event()
"""Set when `manage.py sweep` has received a signal to stop. Never set in other processes."""


class StopRequestedError(Exception):
    """The process has been asked to stop. Unfinished work is started again from the beginning."""


def raise_if_stop_requested() -> None:
    """Raises StopRequestedError if the process has been asked to stop."""
    if stop_requested.is_set():
        raise StopRequestedError
