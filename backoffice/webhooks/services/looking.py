"""Reads the service again because of what it delivered, or because a person wants it."""

from datetime import timedelta

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.queue import ring
from backoffice.ledger.turns import take_turn
from backoffice.operations import services as operations
from backoffice.webhooks.models import Delivery

TASK = "webhooks.look"
EVERY = timedelta(seconds=1)
"""No re-read begins sooner after the one before, however many deliveries come."""
_AT_ONCE = 500


def look_due() -> int:
    """Begin one re-read for all deliveries that want one; how many of them there were.

    May be called at any time and by several processes: one of them reads. What comes meanwhile waits for the next.
    """
    is_wanted = Delivery.objects.filter(wanted_at__isnull=False).exists()
    if not is_wanted or not take_turn("webhooks", pause=EVERY):
        return 0
    taken_up = _take_up()
    operations.look_at_open()
    return taken_up


@transaction.atomic
def look_again(delivery_id: int, *, actor: User) -> Delivery:
    """Have the service read again because of this delivery, whatever it is worth: it is a person who wants it."""
    delivery = Delivery.objects.get(pk=delivery_id)
    Delivery.objects.filter(pk=delivery.pk).update(wanted_at=clock.now())
    audit.record(Action.DELIVERY_LOOKED_INTO, actor=actor, target=delivery, verdict=delivery.verdict)
    ring(TASK, "")
    return delivery


@transaction.atomic
def _take_up() -> int:
    """Hand the wish over to operations and mirror in one commit: whoever dies after it is followed by the sweeper."""
    wanted = dict(
        Delivery.objects.filter(wanted_at__isnull=False).values_list("pk", "transaction_id")[:_AT_ONCE]
    )
    operations.expect_news(set(wanted.values()) - {""})
    return Delivery.objects.filter(pk__in=wanted).update(wanted_at=None, looked_at=clock.now())
