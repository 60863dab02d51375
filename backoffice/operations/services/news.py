"""What the service announces is a reason to look again at once, and for nothing else: only a look closes anything."""

from collections.abc import Collection
from datetime import timedelta

from backoffice.core import clock
from backoffice.ledger import mirroring
from backoffice.ledger.turns import next_turn
from backoffice.operations.models import UNMATCHED, Attempt
from backoffice.operations.services.sweeping import look_at_due

OTHERS_EVERY = timedelta(seconds=15)
"""What is open and not named is not looked at more often because of news, however many come."""


def expect_news(transaction_ids: Collection[str]) -> None:
    """Have everything read that news may be about: open attempts, the closed ones of these transactions, the mirror.

    The open ones of these transactions are due from now on; every other open one, since it may be meant as well, when
    `OTHERS_EVERY` lets it be. None is put off, and whoever looks at one just now leaves that standing (`confirming`):
    the sweeper looks if nobody else does. A closed one is looked at while it is still watched. The schedules go by time
    alone, so a further look uses nothing up.

    Each statement stands by itself, and all of them may be done twice: no row is held while another is waited for. They
    ask the attempts' own columns only, so that one that moves meanwhile is judged as it is then.
    """
    mirroring.ask_for_round()
    now = clock.now()
    soon = next_turn("news of others", pause=OTHERS_EVERY)
    named = Attempt.objects.filter(service_transaction_id__in=transaction_ids)
    named.filter(closed_at__isnull=False, watch_next_at__gt=now).update(watch_next_at=now)
    named.filter(closed_at__isnull=True, next_check_at__gt=now).update(next_check_at=now)
    Attempt.objects.filter(closed_at__isnull=True, next_check_at__gt=soon).update(next_check_at=soon)


def look_at_news(transaction_ids: Collection[str]) -> int:
    """Look at what is due of these transactions, and then at what is due and has none yet; how many were looked at."""
    named = Attempt.objects.filter(service_transaction_id__in=transaction_ids)
    return sum(look_at_due(those) for those in (named, Attempt.objects.filter(UNMATCHED)))
