"""Run the status checks that are due, and make them due when a webhook arrives.

A webhook never changes an operation; only a read of the provider does. Any number of processes may run checks; each
attempt is checked by the one that leases it.
"""

from collections.abc import Collection
from datetime import timedelta

from django.db.models import QuerySet

from backoffice.core import clock
from backoffice.core.isolation import run_each_isolated
from backoffice.core.leases import next_free_time
from backoffice.ledger.mirror import sync
from backoffice.operations.models.operations import UNMATCHED, Attempt
from backoffice.operations.models.reason_codes import CheckResult
from backoffice.operations.outcome.confirmation import confirm_operation
from backoffice.operations.states import AWAITING_PROVIDER

BATCH_SIZE = 100
CHECK_LEASE = timedelta(
    seconds=10
)  # to look once; whoever is gone by then is followed, and two looks do no harm


def check_due() -> int:
    """Look for the outcome of what was sent and is not proven to have ended; how many were looked for."""
    return check_due_among(Attempt.objects.all())


def check_due_among(attempts: QuerySet[Attempt]) -> int:
    """The same of these attempts. What has been due for longest comes first; what others look at is left to them."""
    due = attempts.filter(next_check_at__lte=clock.now(), operation__status__in=AWAITING_PROVIDER)
    in_turn = due.order_by("next_check_at").select_related("operation")
    rows = {each: each.operation.reference for each in in_turn[:BATCH_SIZE]}
    return sum(run_each_isolated(_check_if_leased, rows, failed=_note_failure))


def _check_if_leased(attempt: Attempt) -> bool:
    """Look if nobody else does; whether that was so."""
    if not _lease_check(attempt):
        return False
    confirm_operation(attempt.operation_id)
    return True


def _note_failure(attempt: Attempt, error: str) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(
        check_result=CheckResult.INTERNAL_ERROR, check_parameters={"error": error}
    )


def _lease_check(attempt: Attempt) -> bool:
    """Win the right to look now, by compare-and-set, so that two sweepers do not both ask the service."""
    later = clock.now() + CHECK_LEASE
    won = Attempt.objects.filter(pk=attempt.pk, next_check_at=attempt.next_check_at).update(
        next_check_at=later
    )
    return won == 1


UNNAMED_CHECK_INTERVAL = timedelta(seconds=15)
"""What is open and not named is not looked at more often because of news, however many come."""


def schedule_checks(transaction_ids: Collection[str]) -> None:
    """Have everything read that news may be about: open attempts, the closed ones of these transactions, the mirror.

    The open ones of these transactions are due from now on; every other open one, since it may be meant as well, when
    `OTHERS_EVERY` lets it be. None is put off, and whoever looks at one just now leaves that standing (`confirming`):
    the sweeper looks if nobody else does. A closed one is looked at while it is still watched. The schedules go by time
    alone, so a further look uses nothing up.

    Each statement stands by itself, and all of them may be done twice: no row is held while another is waited for. They
    ask the attempts' own columns only, so that one that moves meanwhile is judged as it is then.
    """
    sync.request_sync()
    now = clock.now()
    soon = next_free_time("news of others", pause=UNNAMED_CHECK_INTERVAL)
    named = Attempt.objects.filter(service_transaction_id__in=transaction_ids)
    named.filter(closed_at__isnull=False, watch_next_at__gt=now).update(watch_next_at=now)
    named.filter(closed_at__isnull=True, next_check_at__gt=now).update(next_check_at=now)
    Attempt.objects.filter(closed_at__isnull=True, next_check_at__gt=soon).update(next_check_at=soon)


def run_scheduled_checks(transaction_ids: Collection[str]) -> int:
    """Look at what is due of these transactions, and then at what is due and has none yet; how many were looked at."""
    named = Attempt.objects.filter(service_transaction_id__in=transaction_ids)
    return sum(check_due_among(those) for those in (named, Attempt.objects.filter(UNMATCHED)))
