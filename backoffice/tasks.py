"""The Celery tasks. Each does at once what is due in the database; the sweeper does it if a message is lost.

They acknowledge early and are never retried: a lost, repeated or delayed message changes nothing.
"""

import logging
from functools import partial
from uuid import UUID

from celery import shared_task
from celery.signals import worker_init, worker_process_init, worker_ready
from django.db import DatabaseError, InterfaceError, connection

from backoffice.core.logs import log_uncaught_exceptions
from backoffice.core.models import ProcessRow
from backoffice.core.telemetry import processes
from backoffice.core.web.request_context import call_context
from backoffice.ledger.mirror import sync
from backoffice.operations.batches.checking import CHECK_TASK, check_file
from backoffice.operations.batches.creation import create_operations
from backoffice.operations.delivery import restore_check
from backoffice.operations.delivery.release import SEND_TASK
from backoffice.operations.delivery.send_queue import send_in_turn
from backoffice.operations.workflow.approvals import CREATE_ROWS_TASK
from backoffice.operations.workflow.bulk_release import RELEASE_MANY_TASK, release_pending
from backoffice.reports.exports import runner
from backoffice.reports.exports.services import RUN_TASK
from backoffice.webhooks import processing

logger = logging.getLogger(__name__)


@worker_init.connect
def compare_at_start(**_of_celery: object) -> None:
    """Compare the database with the journals, and begin that of this machine if nothing was sent yet.

    A worker that did so only for its first payment would take its empty folder for a lost journal if another machine
    had sent meanwhile.
    """
    try:
        restore_check.compare_with_journals()
    except (DatabaseError, InterfaceError) as exc:
        logger.warning("The journals are not compared yet: %s", type(exc).__name__)
    finally:
        connection.close()  # the processes of the pool must not inherit it


@worker_ready.connect
@worker_process_init.connect
def start_reporting(**_of_celery: object) -> None:
    """Report that the worker runs; each process of its pool does so, too."""
    log_uncaught_exceptions()
    processes.start(ProcessRow.Kind.WORKER)


_task = partial(shared_task, ignore_result=True, acks_late=False, max_retries=0)


@_task(name=SEND_TASK)
def send(operation_id: str) -> None:
    """Send this released operation and what is behind it in its queue, if it is still released."""
    with call_context(request_id=f"send-{operation_id[:8]}"):
        send_in_turn(UUID(operation_id))


@_task(name=RELEASE_MANY_TASK)
def release_many(bulk_release_id: str) -> None:
    """Release operations that a person ordered to be sent together, if the order is still pending."""
    with call_context(request_id=f"release-{bulk_release_id[:8]}"):
        release_pending(UUID(bulk_release_id))


@_task(name=processing.PROCESS_TASK)
def process_deliveries(_row_id: str = "") -> None:
    """Process all due deliveries, whatever delivery the message was sent for."""
    with call_context(request_id="webhooks"):
        processing.process_due_deliveries()


@_task(name=sync.SYNC_TASK)
def sync_mirror(_row_id: str) -> None:
    """Read the newest pages now, because something happened at the provider."""
    with call_context(request_id="mirror"):
        sync.sync_now()


@_task(name=CHECK_TASK)
def check_payout_file(file_id: str) -> None:
    """Check a file of payouts, or continue its check."""
    with call_context(request_id=f"file-{file_id[:8]}"):
        check_file(UUID(file_id))


@_task(name=CREATE_ROWS_TASK)
def create_rows(batch_id: str) -> None:
    """Create an operation for each row of an approved batch."""
    with call_context(request_id=f"batch-{batch_id[:8]}"):
        create_operations(UUID(batch_id))


@_task(name=RUN_TASK)
def run_export(export_id: str) -> None:
    """Run one export, if it is still waiting."""
    with call_context(request_id=f"export-{export_id[:8]}"):
        runner.run_export(UUID(export_id))
