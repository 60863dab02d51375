"""Announcing a change of the books: a row beside them, in the same transaction; sending is the courier's."""

from collections.abc import Mapping

from django.db.transaction import on_commit

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.merchant.profile import callback_url
from payments_gateway.sandbox.webhooks import faults
from payments_gateway.sandbox.webhooks.bodies import compact
from payments_gateway.sandbox.webhooks.doorbell import ring
from payments_gateway.sandbox.webhooks.models import Delivery, State


def announce(event: str, data: Mapping[str, object]) -> None:
    """Tell the merchant's callback URL of a change, once the caller's transaction is committed.

    Call it inside the transaction that changes the books: if that is rolled back, nothing was announced. Costs one
    query, and stores nothing, while no callback URL is set. `event` is "Transaction updated", "Payment created" or
    "Payment updated"; `data` holds the members in the order in which they are sent, amounts as Decimal.
    """
    url = callback_url()
    if not url:
        return
    now = clock.now()
    delivery = Delivery(event=event, data=compact(data), url=url, announced_at=now, due_at=now)
    faults.apply(delivery)
    delivery.save(force_insert=True)
    if delivery.state == State.HELD:
        faults.release_if_complete()
    on_commit(ring)
