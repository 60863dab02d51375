"""Rings the worker's doorbell after the commit. The database says what is to be done."""

import logging
from functools import partial

from django.db import transaction
from kombu.exceptions import OperationalError

from backoffice.celery import app

logger = logging.getLogger(__name__)


def ring(task: str, identifier: object) -> None:
    """Tell a worker, once this transaction is committed, that there is something to do.

    Never raises because of the broker: if the message is lost, the sweeper finds the work within seconds.
    """
    transaction.on_commit(partial(_send, task, str(identifier)))


def _send(task: str, identifier: str) -> None:
    try:
        app.send_task(task, args=[identifier])
    except (OperationalError, OSError) as exc:
        logger.warning("The broker cannot be reached (%s); the sweeper will do %s", type(exc).__name__, task)
