"""What the service announces is a reason to look again at once, and for nothing else: only a look closes anything."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from backoffice.core import clock
from backoffice.ledger import mirroring
from backoffice.operations.models import Attempt
from backoffice.operations.services.apart import for_each
from backoffice.operations.services.confirming import confirm_operation
from backoffice.operations.services.sweeping import AT_ONCE, TURN_LASTS
from backoffice.operations.states import AWAITING_THE_SERVICE


@transaction.atomic
def expect_news(transaction_ids: Collection[str]) -> None:
    """Have everything read that news may be about: open attempts, the closed ones of these transactions, the mirror.

    The caller looks at the open ones as soon as this is committed (`look_at_open`), and so has their turn: if it dies,
    the sweeper looks when the turn is over. A closed one is looked at while it is still watched. The schedules go by
    time alone, so a further look uses nothing up.
    """
    now = clock.now()
    _open().update(next_check_at=now + TURN_LASTS)
    watched = Attempt.objects.filter(service_transaction_id__in=transaction_ids, closed_at__isnull=False)
    watched.filter(watch_next_at__gt=now).update(watch_next_at=now)
    mirroring.ask_for_round()


def look_at_open() -> int:
    """Look for the outcome of everything that is open, beginning now; how many were looked at.

    Not by the schedule: a look that is under way may have read the list before the news, and puts the next one off.
    """
    in_turn = _open().order_by("next_check_at").values_list("operation_id", "operation__reference")
    return len(for_each(confirm_operation, dict(in_turn[:AT_ONCE]), failed=_note_failure))


def _note_failure(operation_id: UUID, failure: str) -> None:
    _open().filter(operation=operation_id).update(last_check=failure)


def _open() -> QuerySet[Attempt]:
    return Attempt.objects.filter(closed_at__isnull=True, operation__status__in=AWAITING_THE_SERVICE)
