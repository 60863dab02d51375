"""The sweeper's jobs of operations: release and send what was ordered, check what is due, expire what is late;
and heartbeats.

The sweeper finds in the database what is due, whether or not a message reached a worker.
"""

from datetime import timedelta
from uuid import UUID

from django.db.models import Q

from backoffice.core import clock
from backoffice.core.isolation import POSTPONED_SECONDS, ignore, run_each_isolated
from backoffice.operations.approval.escalation import escalate_due
from backoffice.operations.batches import checking, control, creation
from backoffice.operations.delivery import balance_queue, restore_check
from backoffice.operations.delivery.journal import JournalError
from backoffice.operations.delivery.record import is_silent, record_timeout
from backoffice.operations.delivery.release import expire_release, record_blocker
from backoffice.operations.delivery.send_queue import send_in_turn
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Heartbeat, LostAttempt
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker
from backoffice.operations.monitoring.inspection import inspect_due
from backoffice.operations.outcome.schedule import BATCH_SIZE, check_due
from backoffice.operations.reconciliation.runner import reconcile_due
from backoffice.operations.states import BEFORE_SENDING, Status
from backoffice.operations.workflow.approvals import expire_operation
from backoffice.operations.workflow.bulk_release import release_pending

WORKER_HEAD_START = timedelta(seconds=1)  # a worker gets this long before the sweeper sends by itself


def send_due() -> int:
    """Send what was released and not yet claimed, from the head of each queue; returns how many were tried."""
    now = clock.recent()
    due = balance_queue.queue_heads(now).filter(released_at__lte=now - WORKER_HEAD_START)
    in_turn = due.values_list("pk", "operation__reference")
    return len(run_each_isolated(send_in_turn, dict(in_turn[:BATCH_SIZE]), failed=_postpone_release))


def release_due() -> int:
    """Continue the orders to send several operations whose message no worker received; returns how many."""
    due = BulkRelease.objects.filter(is_pending=True, confirmed_at__lte=clock.recent() - WORKER_HEAD_START)
    names = {pk: f"bulk release {str(pk)[:8]}" for pk in due.values_list("pk", flat=True)[:BATCH_SIZE]}
    return len(run_each_isolated(release_pending, names, failed=ignore))


def expire_due() -> int:
    """Expire operations and releases past their expiry, and end the attempts of senders that are gone.

    What the journals prove is put on record first: it must not end as unsent. While a journal cannot be read, only
    releases expire.
    """
    now = clock.recent()
    lapsed = Release.objects.filter(expires_at__lte=now).values_list("pk", "operation__reference")
    expired = Operation.objects.filter(
        Q(status__in=BEFORE_SENDING, expires_at__lte=now, release__isnull=True)
    ).exclude(pk__in=LostAttempt.objects.maybe_executed().values("operation"))
    abandoned = Attempt.objects.filter(is_silent(now), operation__status=Status.SENDING).values_list(
        "pk", "operation__reference"
    )
    done = run_each_isolated(expire_release, dict(lapsed[:BATCH_SIZE]), failed=ignore)
    if not (expired.exists() or abandoned.exists()):
        return sum(done)
    try:
        restore_check.is_continuous()
    except JournalError:
        return sum(done)  # the comparison of the sweeper logs it
    due = dict(expired.values_list("pk", "reference")[:BATCH_SIZE])
    done += [one is not None for one in run_each_isolated(expire_operation, due, failed=ignore)]
    done += [True for _ in run_each_isolated(_record_timeout, dict(abandoned[:BATCH_SIZE]), failed=ignore)]
    return sum(done)


def _postpone_release(operation_id: UUID, error: str) -> None:
    """Record the blocker of this release, and let the others of its balance be sent before it for a while."""
    record_blocker(operation_id, Blocker.INTERNAL_ERROR, error=error)
    until = clock.now() + timedelta(seconds=POSTPONED_SECONDS)
    Release.objects.filter(pk=operation_id).update(skipped_until=until)


def _record_timeout(attempt_id: int) -> None:
    record_timeout(attempt_id, now=clock.now())


HEARTBEAT_INTERVAL = timedelta(seconds=5)


def record_heartbeat(job: str) -> None:
    """Record that a job of the sweeper finished a round; writes at most every `HEARTBEAT_INTERVAL`."""
    now = clock.now()
    due = Heartbeat.objects.filter(Q(at=None) | Q(at__lte=now - HEARTBEAT_INTERVAL), job=job)
    if not due.update(at=now):
        Heartbeat.objects.bulk_create([Heartbeat(job=job, at=now)], ignore_conflicts=True)


def record_job_failure(job: str, error: str) -> None:
    """Record that a round of this job failed, with the name of the exception."""
    now = clock.now()
    failure = Heartbeat(job=job, failed_at=now, error=error[:120])
    Heartbeat.objects.bulk_create(
        [failure], update_conflicts=True, unique_fields=["job"], update_fields=["failed_at", "error"]
    )


JOBS = {
    "create_batch_rows": creation.create_due,
    "cancel_batch_rows": control.cancel_due,
    "check_payout_files": checking.check_due,
    "compare_with_journals": restore_check.compare_with_journals,
    "expire_due": expire_due,
    "escalate_due": escalate_due,
    "release_due": release_due,
    "send_due": send_due,
    "check_due": check_due,
    "inspect_due": inspect_due,
}
# They compare with what the ledger has just read, so they come after its jobs.
JOBS_AFTER_LEDGER = {"reconcile_due": reconcile_due}
