"""Faults of deliveries on demand: duplicated, reordered, delayed, forged. Each is counted, and ends by itself.

The control API calls the functions that ask for a fault; `outbox` applies what was asked to each delivery it stores.
A fault that is asked for again replaces what was left of the one before; zero takes it away.
"""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import F
from django.db.transaction import atomic, on_commit

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.webhooks.doorbell import ring
from payments_gateway.sandbox.webhooks.models import Delivery, DeliveryFault, Forgery, Kind, State


def duplicate(copies: int, *, deliveries: int = 1) -> None:
    """Send each of the next `deliveries` that many times more, byte for byte the same."""
    _ask(Kind.DUPLICATE, left=deliveries if copies else 0, copies=copies)


def reorder(deliveries: int) -> None:
    """Hold the next `deliveries` until the last of them was announced; then send them in reverse order."""
    _ask(Kind.REORDER, left=deliveries)


def delay(seconds: float, *, deliveries: int = 1) -> None:
    """Send each of the next `deliveries` that many seconds of its own time later than it would have been."""
    _ask(Kind.DELAY, left=deliveries if seconds else 0, seconds=seconds)


def forge(forgery: Forgery, *, deliveries: int = 1) -> None:
    """Make each of the next `deliveries` wrong in this way. Repeated attempts repeat the same wrong bytes."""
    _ask(Kind.FORGE, left=deliveries, forgery=forgery)


def in_force() -> dict[str, dict[str, object]]:
    """Each kind of fault: how many deliveries it has `left`, how many it was `applied` to, and its particulars."""
    known = {fault.kind: fault for fault in DeliveryFault.objects.all()}
    return {kind.value: _shown(kind, known.get(kind) or DeliveryFault(kind=kind)) for kind in Kind}


@atomic
def clear() -> None:
    """Take all faults away and count from zero. What was held goes out, in reverse."""
    DeliveryFault.objects.all().delete()
    _release()


def apply(delivery: Delivery) -> None:
    """Give a delivery that is not stored yet the faults that are due, and count them down."""
    due = {fault.kind: fault for fault in DeliveryFault.objects.filter(left__gt=0)}
    if Kind.DUPLICATE in due:
        delivery.copies = due[Kind.DUPLICATE].copies
    if Kind.DELAY in due:
        delivery.due_at += timedelta(seconds=due[Kind.DELAY].seconds)
    if Kind.FORGE in due:
        delivery.forgery = due[Kind.FORGE].forgery
    if Kind.REORDER in due:
        delivery.state = State.HELD
    if due:
        DeliveryFault.objects.filter(kind__in=due).update(left=F("left") - 1, applied=F("applied") + 1)


def release_if_complete() -> None:
    """Send what is held, in reverse, once nothing more is to be held. For `outbox`, after a delivery was stored."""
    if not DeliveryFault.objects.filter(kind=Kind.REORDER, left__gt=0).exists():
        _release()


@atomic
def _ask(kind: Kind, **changes: Any) -> None:
    DeliveryFault.objects.update_or_create(kind=kind, defaults=changes)
    release_if_complete()


def _release() -> None:
    held = list(Delivery.objects.filter(state=State.HELD).order_by("id"))
    places = [delivery.id for delivery in reversed(held)]
    for delivery, place in zip(held, places, strict=True):
        delivery.state, delivery.place = State.WAITING, place
        delivery.due_at = max(delivery.due_at, clock.now())
    Delivery.objects.bulk_update(held, ["state", "place", "due_at"])
    on_commit(ring)


def _shown(kind: Kind, fault: DeliveryFault) -> dict[str, object]:
    particulars: dict[Kind, dict[str, object]] = {
        Kind.DUPLICATE: {"copies": fault.copies},
        Kind.DELAY: {"seconds": Decimal(str(fault.seconds)).normalize()},
        Kind.FORGE: {"forgery": fault.forgery},
        Kind.REORDER: {},
    }
    return {"left": fault.left, "applied": fault.applied, **particulars[kind]}
