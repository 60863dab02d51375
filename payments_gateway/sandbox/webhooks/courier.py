"""Takes what the outbox holds to the callback URL, from a thread of the one process that serves.

It looks when it is woken after a commit, and twice a second besides: for what is to be repeated, what was delayed, and
what has become due in the books while nobody asked, since settling is an event, too. Anything but a 2xx is tried again
after `PAUSES` of the service's time, so putting its clock forward brings the next try closer. Each delivery is sent at
least once; a process that ends in the middle of a try repeats it after its next start.
"""

import threading
from collections.abc import Callable
from datetime import timedelta

from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce
from django.db.transaction import atomic

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.merchant.profile import callback_url
from payments_gateway.sandbox.webhooks import bodies, doorbell, signing
from payments_gateway.sandbox.webhooks.models import Attempt, Delivery, State
from payments_gateway.sandbox.webhooks.post import NotOursError, Outcome, post

PAUSES = (1, 5, 30, 120, 600)
"""Seconds between one failed try and the next. After the last there is one more try, then it is given up."""

_ROUND_SECONDS = 0.5


def start(*, before_each_round: Callable[[], None]) -> None:
    """Begin to deliver. The thread ends with the process.

    While there is a callback URL, `before_each_round` is called before each look at the outbox: it brings the books to
    where time has brought them, as a request would.
    """
    threading.Thread(target=_work, args=(before_each_round,), name="courier", daemon=True).start()


def _work(catch_up: Callable[[], None]) -> None:
    try:
        while True:
            doorbell.wait(_ROUND_SECONDS)
            if callback_url():
                catch_up()
            deliver_due()
    finally:
        # What ended this thread is on standard error by now; the next one goes on with what is still waiting.
        connection.close()
        start(before_each_round=catch_up)


def deliver_due() -> None:
    """Make one try for each delivery that is due, in the order in which they are to arrive."""
    while (delivery := _next_due()) is not None:
        try:
            _record(delivery, post(delivery.url, _body_of(delivery).encode()))
        except NotOursError as exc:
            _end(delivery, State.NOT_DELIVERED, str(exc))


def _next_due() -> Delivery | None:
    waiting = Delivery.objects.filter(state=State.WAITING, due_at__lte=clock.now())
    return waiting.order_by(Coalesce(F("place"), F("id"))).first()


def _body_of(delivery: Delivery) -> str:
    """Sign before the first try, and keep what was signed: every later try sends the same bytes."""
    if not delivery.body:
        key = signing.key_for(delivery.id)
        delivery.body = bodies.body(delivery.event, delivery.data, key, delivery.forgery)
        Delivery.objects.filter(id=delivery.id).update(body=delivery.body)
    return delivery.body


@atomic(durable=True)
def _record(delivery: Delivery, outcome: Outcome) -> None:
    if not Delivery.objects.filter(id=delivery.id).exists():
        return  # a reset came in between
    Attempt.objects.create(delivery=delivery, at=clock.now(), status=outcome.status, reason=outcome.reason)
    if not outcome.is_success:
        _postpone(delivery)
    elif delivery.copies:
        Delivery.objects.filter(id=delivery.id).update(copies=delivery.copies - 1)
    else:
        _end(delivery, State.DELIVERED)


def _postpone(delivery: Delivery) -> None:
    failures = delivery.failures + 1
    if failures > len(PAUSES):
        _end(delivery, State.GIVEN_UP, f"no success in {failures} tries")
        return
    due_at = clock.now() + timedelta(seconds=PAUSES[failures - 1])
    Delivery.objects.filter(id=delivery.id).update(failures=failures, due_at=due_at)


def _end(delivery: Delivery, state: State, reason: str = "") -> None:
    Delivery.objects.filter(id=delivery.id).update(state=state, reason=reason)
