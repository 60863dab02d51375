"""The sweeper: run the work that is due in the database, every one to five seconds, without a broker."""

import logging
import math
import signal
import threading
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, close_old_connections, connection

from backoffice.accounts.protection.lockout import record_lockouts_due, record_refusals_due
from backoffice.api_keys.key_list import refresh_keys_if_due
from backoffice.audit.checkpoints import deliver_checkpoints_due, verify_log_due
from backoffice.core import background, isolation
from backoffice.core.models import ProcessRow
from backoffice.core.telemetry import processes
from backoffice.core.web.request_context import call_context
from backoffice.ledger.accounts import refresh_lists_due
from backoffice.ledger.balances import take_due_snapshot
from backoffice.ledger.mirror.sync import sync_if_due
from backoffice.notifications import jobs as notifications
from backoffice.operations import jobs as operations
from backoffice.reports.exports.runner import run_all_exports, run_next_export
from backoffice.reports.exports.services import delete_expired_exports
from backoffice.reports.schedules.messages import send_due_messages
from backoffice.reports.schedules.services import run_due_schedules
from backoffice.retention.prune import prune_due
from backoffice.webhooks.processing import process_due_deliveries

logger = logging.getLogger(__name__)
SENDER_THREADS = 4  # threads that send: a slow call to the provider delays only its own operation
# The keys are the names in the log and in the metrics.
JOBS = {
    **operations.JOBS,
    "deliver_checkpoints_due": deliver_checkpoints_due,
    "verify_log_due": verify_log_due,
    "take_due_snapshot": take_due_snapshot,
    "refresh_lists_due": refresh_lists_due,
    "sync_if_due": sync_if_due,
    **operations.JOBS_AFTER_LEDGER,
    "process_due_deliveries": process_due_deliveries,
    "refresh_keys_if_due": refresh_keys_if_due,
    "run_due_schedules": run_due_schedules,
    "run_next_export": run_next_export,
    "send_due_messages": send_due_messages,
    "delete_expired_exports": delete_expired_exports,
    "record_refusals_due": record_refusals_due,
    "record_lockouts_due": record_lockouts_due,
    **notifications.JOBS,
    "prune_due": prune_due,
}
# Jobs whose work can wait some seconds: while nothing is due they run less often, since each round takes a query.
LOW_FREQUENCY = {
    "delete_expired_exports",
    "escalate_due",
    "inspect_due",
    "prune_due",
    "reconcile_due",
    "record_lockouts_due",
    "record_refusals_due",
    "refresh_keys_if_due",
    "run_due_schedules",
    "take_due_snapshot",
    "verify_log_due",
    *notifications.JOBS,
}
LONGEST_PAUSE = 30  # seconds; an idle job pauses five times as long, and its alarm comes after five minutes
IDLE_FACTOR = 5  # their pause while nothing is due, in pauses of the other jobs
# A round makes one export; `--once` makes all that are queued.
JOBS_ONCE = JOBS | {"run_next_export": run_all_exports}


class Command(BaseCommand):
    """Sends released operations, checks unknown outcomes, and expires what is late.

    Also runs the integrity checks, delivers checkpoints of the audit log and verifies it, syncs the
    provider's data, reconciles it with the operations, and makes exports in the background. Any number of
    sweepers may run.
    """

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="run what is due now, then exit")
        parser.add_argument(
            "--every",
            type=_pause,
            default=1.0,
            metavar="SECONDS",
            help="pause between two rounds; jobs of low frequency pause five times as long while nothing is due",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self._run_once()
            return
        processes.start(ProcessRow.Kind.SWEEPER)
        stop = background.stop_requested  # long jobs check it between two steps
        stop.clear()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.set())
        # Begin the journal now: once another machine has sent, an empty folder counts as a lost journal.
        _run_round("compare_with_journals", JOBS["compare_with_journals"], is_due=True)
        # A thread each: reading the provider slowly must not keep a released operation waiting.
        jobs = [*JOBS, *["send_due"] * (SENDER_THREADS - 1)]
        with ThreadPoolExecutor(len(jobs)) as pool:
            for future in [pool.submit(_repeat, name, JOBS[name], stop, options["every"]) for name in jobs]:
                future.result()

    def _run_once(self) -> None:
        counts = {name: isolation.run_isolated(name, job) for name, job in JOBS_ONCE.items()}
        self.stdout.write(f"{sum(filter(None, counts.values()))} due items processed")
        if failed := [name for name, count in counts.items() if count is None]:
            raise CommandError(f"These jobs failed, and the log says why: {', '.join(failed)}.")


def _pause(text: str) -> float:
    """Seconds between two rounds. Without a pause the threads would keep a processor and the database busy."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_PAUSE:
        raise ArgumentTypeError(f"{text!r} is no pause: write seconds above 0, at most {LONGEST_PAUSE}")
    return seconds


def _repeat(name: str, job: Callable[[], int], stop: threading.Event, every: float) -> None:
    """Run the job until asked to stop. A job that fails is logged and tried again; its age is a metric."""
    recorded_at = -math.inf
    pause = every
    try:
        while not stop.wait(pause):
            is_due = time.monotonic() - recorded_at >= operations.HEARTBEAT_INTERVAL.total_seconds()
            done = _run_round(name, job, is_due=is_due)
            if is_due and done is not None:
                recorded_at = time.monotonic()
            is_idle = name in LOW_FREQUENCY and not done
            if is_idle:
                # PostgreSQL accepts 100 connections by default, and each job's thread would keep one open.
                connection.close()
            pause = every * IDLE_FACTOR if is_idle else every
    finally:
        stop.set()


def _run_round(name: str, job: Callable[[], int], *, is_due: bool) -> int | None:
    """Run the job once; returns how much it did, or None if it failed.

    With `is_due` a heartbeat is recorded and the connection checked, which takes a query each.
    """
    try:
        if is_due:
            close_old_connections()
        with call_context(request_id=f"sweep-{name}"):
            done = isolation.run_isolated(name, job, failed=operations.record_job_failure)
            if is_due and done is not None:
                operations.record_heartbeat(name)
            return done
    except Error as exc:  # an InterfaceError, too, which is no DatabaseError
        if not isolation.log_if_database_unavailable(exc):
            logger.exception("The heartbeat of the job %s was not stored: database error", name)
        return None
