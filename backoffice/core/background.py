"""Work in the background: wake a worker after the commit, and end long work early when the process has to stop.

The database says what is to be done. A lost message costs seconds, because the sweeper finds the work.
"""

import logging
from functools import partial
from threading import Event

from django.db import transaction
from kombu.exceptions import OperationalError

from backoffice.celery import app

logger = logging.getLogger(__name__)


def enqueue_on_commit(task: str, identifier: object) -> None:
    """Tell a worker, once this transaction is committed, that there is something to do.

    Never raises because of the broker: if the message is lost, the sweeper finds the work within seconds.
    """
    transaction.on_commit(partial(_send, task, str(identifier)))


def _send(task: str, identifier: str) -> None:
    try:
        app.send_task(task, args=[identifier])
    except (OperationalError, OSError) as exc:
        logger.warning("The broker cannot be reached (%s); the sweeper will do %s", type(exc).__name__, task)


stop_requested = Event()
"""Set by a process that ends when its work lets it (`manage.py sweep`); never in others."""


class StopRequestedError(Exception):
    """The process was told to end. What was begun is to be begun anew."""


def raise_if_stop_requested() -> None:
    """Raises StoppedError if it was."""
    if stop_requested.is_set():
        raise StopRequestedError
