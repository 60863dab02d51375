"""Finds what is due in the database, whether or not the doorbell rang. Any number may run at once."""

from datetime import timedelta

from django.db.models import Q

from backoffice.core import clock
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.services.confirming import confirm_operation
from backoffice.operations.services.deciding import expire_operation
from backoffice.operations.services.recording import grace, record_silence
from backoffice.operations.services.releasing import lapse_release
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
    due = Release.objects.filter(released_at__lte=now - DOORBELL_HAS, expires_at__gt=now)
    pks = list(due.order_by(*Release.IN_TURN).values_list("pk", flat=True)[:AT_ONCE])
    for pk in pks:
        send_operation(pk)
    return len(pks)


def close_due() -> int:
    """Look for the outcome of what was sent and is not proven to have ended; how many were looked for."""
    now = clock.now()
    due = Attempt.objects.filter(next_check_at__lte=now, operation__status__in=AWAITING_THE_SERVICE)
    looked = 0
    for attempt in due.order_by("next_check_at")[:AT_ONCE]:
        if _take_turn(attempt):
            confirm_operation(attempt.operation_id)
            looked += 1
    return looked


def tidy_up() -> int:
    """Expire what ran out of time, destroy tokens that waited too long, give up on senders that are gone."""
    now = clock.now()
    lapsed = Release.objects.filter(expires_at__lte=now).values_list("pk", flat=True)
    expired = Operation.objects.filter(
        Q(status__in=UNDECIDED, expires_at__lte=now, release__isnull=True)
    ).values_list("pk", flat=True)
    gone = Attempt.objects.filter(
        closed_at__isnull=True, operation__status=Status.SENDING, deadline_at__lt=now - grace()
    ).values_list("pk", flat=True)
    done = [lapse_release(pk) for pk in list(lapsed[:AT_ONCE])]
    done += [expire_operation(pk) is not None for pk in list(expired[:AT_ONCE])]
    for attempt_id in list(gone[:AT_ONCE]):
        record_silence(attempt_id, now=now)
        done.append(True)
    return sum(done)


def _take_turn(attempt: Attempt) -> bool:
    """Win the right to look now, by compare-and-set, so that two sweepers do not both ask the service."""
    later = clock.now() + TURN_LASTS
    won = Attempt.objects.filter(pk=attempt.pk, next_check_at=attempt.next_check_at).update(
        next_check_at=later
    )
    return won == 1
