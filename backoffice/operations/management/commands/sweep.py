"""The sweeper: does what is due in the database, every second, without a broker."""

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

from backoffice.core import background, isolation
from backoffice.core.web.request_context import call_context
from backoffice.ledger.balances import take_due_snapshot
from backoffice.ledger.mirror.sync import sync_if_due
from backoffice.operations import jobs
from backoffice.operations.jobs import expire_due, send_due
from backoffice.operations.monitoring import inspection
from backoffice.operations.outcome import schedule
from backoffice.operations.reconciliation import closed_checks, runner

logger = logging.getLogger(__name__)
SENDER_THREADS = 4  # threads that send: a slow call to the provider delays only its own operation
# By name: these applications depend on this one and cannot be imported here.
_JOBS_ABOVE = (
    "backoffice.webhooks.processing.process_due_deliveries",
    "backoffice.api_keys.key_list.refresh_keys_if_due",
    "backoffice.reports.schedules.services.run_due_schedules",
    "backoffice.reports.exports.runner.run_next_export",
    "backoffice.reports.schedules.messages.send_due_messages",
    "backoffice.reports.exports.services.delete_expired_exports",
)
# A round of the first makes one file; with `--once`, the second makes all that are waiting.
_JOBS_WHEN_ONCE = {
    "backoffice.reports.exports.runner.run_next_export": "backoffice.reports.exports.runner.run_all_exports"
}


class Command(BaseCommand):
    """Sends, checks and expires what is due, and checks closed operations again.

    Also checks the invariants, syncs the provider's data, reconciles it with operations, and makes files in
    the background. Any number of sweepers may run.
    """

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="do what is due now, and end")
        parser.add_argument(
            "--every", type=float, default=1.0, metavar="SECONDS", help="pause between two rounds"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        is_once: bool = options["once"]
        others = [_JOBS_WHEN_ONCE.get(name, name) if is_once else name for name in _JOBS_ABOVE]
        jobs = (
            send_due,
            schedule.check_due,
            expire_due,
            closed_checks.recheck_closed_due,
            inspection.inspect_due,
            take_due_snapshot,
            sync_if_due,
            runner.reconcile_due,
            *map(import_string, others),
        )
        if is_once:
            self.stdout.write(f"{sum(isolation.run_isolated(job) or 0 for job in jobs)} due and done")
            return
        stop = background.stop_requested  # long jobs check it between two steps
        stop.clear()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.set())
        # One thread each: a slow read of the provider must not delay a released operation.
        at_work = [*jobs, *[send_due] * (SENDER_THREADS - 1)]
        with ThreadPoolExecutor(len(at_work)) as pool:
            for running in [pool.submit(_repeat, job, stop, options["every"]) for job in at_work]:
                running.result()


def _repeat(job: Callable[[], int], stop: threading.Event, pause: float) -> None:
    """Run the job until asked to stop. A job that fails is logged and tried again; its age is a metric."""
    try:
        while not stop.wait(pause):
            _run_round(job)
    finally:
        stop.set()


def _run_round(job: Callable[[], int]) -> None:
    try:
        close_old_connections()
        with call_context(request_id=f"sweep-{job.__name__}"):
            if isolation.run_isolated(job) is not None:
                jobs.record_heartbeat(job.__name__)
    except Error:  # includes InterfaceError, which is no DatabaseError
        logger.exception("The database did not let a round of %s be noted", job.__name__)
