"""Finds what is due in the database, whether or not the doorbell rang. Any number may run at once.

What goes wrong with one operation stops no other (`apart`).
"""

from datetime import timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from backoffice.core import clock
from backoffice.operations import turns
from backoffice.operations.blockers import Blocker
from backoffice.operations.check_results import CheckResult
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.services.apart import PUT_OFF_SECONDS, for_each, tell_nobody
from backoffice.operations.services.confirming import confirm_operation
from backoffice.operations.services.deciding import expire_operation
from backoffice.operations.services.recording import grace, record_silence
from backoffice.operations.services.releasing import lapse_release, record_blocker
from backoffice.operations.services.sending import send_operation
from backoffice.operations.states import AWAITING_THE_SERVICE, UNDECIDED, Status

DOORBELL_HAS = timedelta(seconds=1)  # so long the worker is given before the sweeper sends itself
AT_ONCE = 100
TURN_LASTS = timedelta(
    seconds=10
)  # to look once; whoever is gone by then is followed, and two looks do no harm


def send_due() -> int:
    """Send what was released and not yet claimed; how many were tried."""
    now = clock.now()
    due = turns.next_ones_first(now).filter(released_at__lte=now - DOORBELL_HAS)
    in_turn = due.values_list("pk", "operation__reference")
    return len(for_each(send_operation, dict(in_turn[:AT_ONCE]), failed=_step_aside))


def close_due() -> int:
    """Look for the outcome of what was sent and is not proven to have ended; how many were looked for."""
    return look_at_due(Attempt.objects.all())


def look_at_due(attempts: QuerySet[Attempt]) -> int:
    """The same of these attempts. What has been due for longest comes first; what others look at is left to them."""
    due = attempts.filter(next_check_at__lte=clock.now(), operation__status__in=AWAITING_THE_SERVICE)
    in_turn = due.order_by("next_check_at").select_related("operation")
    rows = {each: each.operation.reference for each in in_turn[:AT_ONCE]}
    return sum(for_each(_look_at, rows, failed=_note_failure))


def tidy_up() -> int:
    """Expire what ran out of time, destroy tokens that waited too long, give up on senders that are gone."""
    now = clock.now()
    lapsed = Release.objects.filter(expires_at__lte=now).values_list("pk", "operation__reference")
    expired = Operation.objects.filter(
        Q(status__in=UNDECIDED, expires_at__lte=now, release__isnull=True)
    ).values_list("pk", "reference")
    gone = Attempt.objects.filter(
        closed_at__isnull=True, operation__status=Status.SENDING, deadline_at__lt=now - grace()
    ).values_list("pk", "operation__reference")
    done = for_each(lapse_release, dict(lapsed[:AT_ONCE]), failed=tell_nobody)
    done += [
        one is not None for one in for_each(expire_operation, dict(expired[:AT_ONCE]), failed=tell_nobody)
    ]
    done += [True for _ in for_each(_give_up, dict(gone[:AT_ONCE]), failed=tell_nobody)]
    return sum(done)


def _step_aside(operation_id: UUID, error: str) -> None:
    """Say what stands in the way of this release, and let the others of its balance go before it for a while."""
    record_blocker(operation_id, Blocker.INTERNAL_ERROR, error=error)
    until = clock.now() + timedelta(seconds=PUT_OFF_SECONDS)
    Release.objects.filter(pk=operation_id).update(out_of_turn_until=until)


def _look_at(attempt: Attempt) -> bool:
    """Look if nobody else does; whether that was so."""
    if not _take_turn(attempt):
        return False
    confirm_operation(attempt.operation_id)
    return True


def _note_failure(attempt: Attempt, error: str) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(
        check_result=CheckResult.INTERNAL_ERROR, check_parameters={"error": error}
    )


def _give_up(attempt_id: int) -> None:
    record_silence(attempt_id, now=clock.now())


def _take_turn(attempt: Attempt) -> bool:
    """Win the right to look now, by compare-and-set, so that two sweepers do not both ask the service."""
    later = clock.now() + TURN_LASTS
    won = Attempt.objects.filter(pk=attempt.pk, next_check_at=attempt.next_check_at).update(
        next_check_at=later
    )
    return won == 1
