"""The sweeper: does every second what is due in the database, without a broker."""

import logging
import signal
import threading
from argparse import ArgumentParser
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections
from django.utils.module_loading import import_string

from backoffice.core import stopping
from backoffice.core.context import calling
from backoffice.ledger.mirroring import mirror_due
from backoffice.ledger.services import keep_snapshots
from backoffice.operations import services

logger = logging.getLogger(__name__)
SENDERS = 4  # threads that send: one slow call to the service holds up none but itself
# By name: these applications stand above this one.
_OF_OTHERS = (
    "backoffice.webhooks.services.look_due",
    "backoffice.integration.services.keep_keys",
    "backoffice.reports.services.run_schedules",
    "backoffice.reports.services.run_due",
    "backoffice.reports.services.tell_recipients",
    "backoffice.reports.services.tidy_exports",
)
# A round makes one file; whoever comes by once makes all that wait.
_WHEN_ONCE = {"backoffice.reports.services.run_due": "backoffice.reports.services.run_all_due"}


class Command(BaseCommand):
    """Sends what the doorbell missed, closes what is open, expires what is late, looks again at what is closed.

    Inspects what must always hold, keeps what the service tells and reconciles it with operations, and makes files in
    the background. Any number may run.
    """

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="do what is due now, and end")
        parser.add_argument(
            "--every", type=float, default=1.0, metavar="SECONDS", help="pause between two rounds"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        is_once: bool = options["once"]
        others = [_WHEN_ONCE.get(name, name) if is_once else name for name in _OF_OTHERS]
        jobs = (
            services.send_due,
            services.close_due,
            services.tidy_up,
            services.watch_due,
            services.inspect_due,
            keep_snapshots,
            mirror_due,
            services.reconcile_due,
            *map(import_string, others),
        )
        if is_once:
            self.stdout.write(f"{sum(services.do_apart(job) or 0 for job in jobs)} due and done")
            return
        stop = stopping.asked  # whatever takes long looks at it between two pieces
        stop.clear()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.set())
        # A thread each: reading the service slowly must not keep a released operation waiting.
        at_work = [*jobs, *[services.send_due] * (SENDERS - 1)]
        with ThreadPoolExecutor(len(at_work)) as pool:
            for running in [pool.submit(_repeat, job, stop, options["every"]) for job in at_work]:
                running.result()


def _repeat(job: Callable[[], int], stop: threading.Event, pause: float) -> None:
    """Do the job until told to stop. A job that fails is logged and tried again; its age is a metric."""
    try:
        while not stop.wait(pause):
            _round_of(job)
    finally:
        stop.set()


def _round_of(job: Callable[[], int]) -> None:
    try:
        close_old_connections()
        with calling(request_id=f"sweep-{job.__name__}"):
            if services.do_apart(job) is not None:
                services.note_round(job.__name__)
    except Error:  # an InterfaceError, too, which is no DatabaseError
        logger.exception("The database did not let a round of %s be noted", job.__name__)
