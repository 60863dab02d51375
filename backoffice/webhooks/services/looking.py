"""Reads the service again because of what it delivered, or because a person wants it."""

from datetime import timedelta

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.queue import ring
from backoffice.ledger.turns import take_turn, turn_held
from backoffice.operations import services as operations
from backoffice.webhooks.models import Delivery

TASK = "webhooks.look"
EVERY = timedelta(seconds=1)
"""Wishes are not taken up sooner after the time before, however many deliveries come."""
_LOOKS_FOR = timedelta(minutes=2)
"""So long a process that was killed while it looked keeps others from it. What is wanted is due: the sweeper looks."""
_AT_ONCE = 500


def look_due() -> int:
    """Take up all deliveries that want the service to be read, and look at what they name; how many there were.

    May be called at any time and by several processes: one of them takes up, and one looks, however long that takes.
    What is taken up meanwhile is due, and so are all others that may be meant: the sweeper looks at them.
    """
    is_wanted = Delivery.objects.filter(wanted_at__isnull=False).exists()
    if not is_wanted or not take_turn("webhooks", pause=EVERY):
        return 0
    wanted = _take_up()
    with turn_held("webhooks, looking", at_most=_LOOKS_FOR) as is_ours:
        if is_ours:
            operations.look_at_news(_named_in(wanted))
    return len(wanted)


@transaction.atomic
def look_again(delivery_id: int, *, actor: User) -> Delivery:
    """Have the service read again because of this delivery, whatever it is worth: it is a person who wants it."""
    delivery = Delivery.objects.get(pk=delivery_id)
    Delivery.objects.filter(pk=delivery.pk).update(wanted_at=clock.now())
    audit.record(Action.DELIVERY_LOOKED_INTO, actor=actor, target=delivery, verdict=delivery.verdict)
    ring(TASK, "")
    return delivery


def _take_up() -> dict[int, str]:
    """Hand the wishes over to operations and mirror: the transactions they name, by delivery.

    Whoever dies before it is all done does it again; after it, the sweeper looks.
    """
    wanted = dict(
        Delivery.objects.filter(wanted_at__isnull=False).values_list("pk", "transaction_id")[:_AT_ONCE]
    )
    operations.expect_news(_named_in(wanted))
    Delivery.objects.filter(pk__in=wanted).update(wanted_at=None, looked_at=clock.now())
    return wanted


def _named_in(wanted: dict[int, str]) -> set[str]:
    return set(wanted.values()) - {""}
