"""Announce a change of the books: store a delivery in the same transaction; `delivery` sends it.

Delivery faults on demand (duplicated, reordered, delayed, forged) are requested by the control API and
applied when a delivery is stored. Each is counted and expires by itself; a new request of the same kind
replaces the rest of the earlier one, and zero removes it. Also lists the deliveries for the control API and
deletes them on reset.
"""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import F
from django.db.transaction import atomic, on_commit

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.merchant.details import callback_url
from payments_gateway.sandbox.models import (
    Attempt,
    Delivery,
    DeliveryFault,
    DeliveryFaultKind,
    DeliveryState,
    Forgery,
)
from payments_gateway.sandbox.webhooks import signing
from payments_gateway.sandbox.webhooks.delivery import wake_delivery_thread
from payments_gateway.sandbox.webhooks.signing import compact_json


def duplicate_next(copies: int, *, deliveries: int = 1) -> None:
    """Send each of the next `deliveries` this many additional times, byte for byte the same."""
    _request_fault(DeliveryFaultKind.DUPLICATE, left=deliveries if copies else 0, copies=copies)


def reorder_next(deliveries: int) -> None:
    """Hold the next `deliveries` until the last of them was created; then send them in reverse order."""
    _request_fault(DeliveryFaultKind.REORDER, left=deliveries)


def delay_next(seconds: float, *, deliveries: int = 1) -> None:
    """Send each of the next `deliveries` this many seconds later, by the provider's clock."""
    _request_fault(DeliveryFaultKind.DELAY, left=deliveries if seconds else 0, seconds=seconds)


def forge_next(forgery: Forgery, *, deliveries: int = 1) -> None:
    """Forge each of the next `deliveries` in this way. Repeated attempts send the same forged bytes."""
    _request_fault(DeliveryFaultKind.FORGE, left=deliveries, forgery=forgery)


def delivery_faults() -> dict[str, dict[str, object]]:
    """Each kind of fault: the deliveries `left`, those `applied` so far, and its parameters."""
    stored_faults = {fault.kind: fault for fault in DeliveryFault.objects.all()}
    return {
        kind.value: _fault_json(kind, stored_faults.get(kind) or DeliveryFault(kind=kind))
        for kind in DeliveryFaultKind
    }


@atomic
def clear_delivery_faults() -> None:
    """Remove all faults and reset their counters. Held deliveries are sent, in reverse order."""
    DeliveryFault.objects.all().delete()
    _release_held()


def _apply_faults(delivery: Delivery) -> None:
    """Apply the active faults to a delivery that is not stored yet, and count them down."""
    due = {fault.kind: fault for fault in DeliveryFault.objects.filter(left__gt=0)}
    if DeliveryFaultKind.DUPLICATE in due:
        delivery.copies = due[DeliveryFaultKind.DUPLICATE].copies
    if DeliveryFaultKind.DELAY in due:
        delivery.due_at += timedelta(seconds=due[DeliveryFaultKind.DELAY].seconds)
    if DeliveryFaultKind.FORGE in due:
        delivery.forgery = due[DeliveryFaultKind.FORGE].forgery
    if DeliveryFaultKind.REORDER in due:
        delivery.state = DeliveryState.HELD
    if due:
        DeliveryFault.objects.filter(kind__in=due).update(left=F("left") - 1, applied=F("applied") + 1)


def _release_if_complete() -> None:
    """Send the held deliveries in reverse order if no more are to be held. Call it after storing one."""
    if not DeliveryFault.objects.filter(kind=DeliveryFaultKind.REORDER, left__gt=0).exists():
        _release_held()


@atomic
def _request_fault(kind: DeliveryFaultKind, **changes: Any) -> None:
    DeliveryFault.objects.update_or_create(kind=kind, defaults=changes)
    _release_if_complete()


def _release_held() -> None:
    held = list(Delivery.objects.filter(state=DeliveryState.HELD).order_by("id"))
    places = [delivery.id for delivery in reversed(held)]
    for delivery, place in zip(held, places, strict=True):
        delivery.state, delivery.place = DeliveryState.WAITING, place
        delivery.due_at = max(delivery.due_at, clock.now())
    Delivery.objects.bulk_update(held, ["state", "place", "due_at"])
    on_commit(wake_delivery_thread)


def _fault_json(kind: DeliveryFaultKind, fault: DeliveryFault) -> dict[str, object]:
    parameters: dict[DeliveryFaultKind, dict[str, object]] = {
        DeliveryFaultKind.DUPLICATE: {"copies": fault.copies},
        DeliveryFaultKind.DELAY: {"seconds": Decimal(str(fault.seconds)).normalize()},
        DeliveryFaultKind.FORGE: {"forgery": fault.forgery},
        DeliveryFaultKind.REORDER: {},
    }
    return {"left": fault.left, "applied": fault.applied, **parameters[kind]}


def announce(event: str, data: Mapping[str, object]) -> None:
    """Announce a change to the merchant's callback URL, once the caller's transaction is committed.

    Call it inside the transaction that changes the books, so that a rollback also removes the delivery. While
    no callback URL is set it costs one query and stores nothing. `event` is "Transaction updated", "Payment
    created" or "Payment updated"; `data` holds the members in the order in which they are sent, amounts as
    Decimal.
    """
    url = callback_url()
    if not url:
        return
    now = clock.now()
    delivery = Delivery(event=event, data=compact_json(data), url=url, announced_at=now, due_at=now)
    _apply_faults(delivery)
    delivery.save(force_insert=True)
    if delivery.state == DeliveryState.HELD:
        _release_if_complete()
    on_commit(wake_delivery_thread)


def list_deliveries(limit: int) -> list[dict[str, object]]:
    """The latest deliveries, newest first, each with all its attempts.

    Members: id, event, data and body (JSON texts; body is empty before the first attempt), url, state
    (waiting, held, delivered, given up, not delivered), reason, forgery (empty for a genuine one),
    announcedAt, dueAt, and attempts, oldest first, with at, status (null without a response) and reason.
    """
    return [_delivery_json(delivery) for delivery in Delivery.objects.order_by("-id")[:limit]]


@atomic
def delete_deliveries() -> None:
    """Delete every delivery, every delivery fault and every key but the newest, for a reset."""
    Delivery.objects.all().delete()
    clear_delivery_faults()
    signing.forget_rotations()


def _delivery_json(delivery: Delivery) -> dict[str, object]:
    attempts = Attempt.objects.filter(delivery=delivery).order_by("id")
    return {
        "id": delivery.id,
        "event": delivery.event,
        "data": delivery.data,
        "body": delivery.body,
        "url": delivery.url,
        "state": delivery.state,
        "reason": delivery.reason,
        "forgery": delivery.forgery,
        "announcedAt": clock.iso_timestamp(delivery.announced_at),
        "dueAt": clock.iso_timestamp(delivery.due_at),
        "attempts": [_attempt_json(attempt) for attempt in attempts],
    }


def _attempt_json(attempt: Attempt) -> dict[str, object]:
    return {"at": clock.iso_timestamp(attempt.at), "status": attempt.status, "reason": attempt.reason}
