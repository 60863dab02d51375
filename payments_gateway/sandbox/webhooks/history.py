"""What became of the deliveries, for the control API and the console; and forgetting it all."""

from django.db.transaction import atomic

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.webhooks import faults, signing
from payments_gateway.sandbox.webhooks.models import Attempt, Delivery


def deliveries(limit: int) -> list[dict[str, object]]:
    """The latest deliveries, newest first, each with every try that was made.

    Members: id, event, data and body (JSON texts; body is empty before the first try), url, state (waiting, held,
    delivered, given up, not delivered), reason, forgery (empty for an honest one), announcedAt, dueAt, and attempts,
    oldest first, of at, status (null when nothing came back) and reason.
    """
    return [_delivery(delivery) for delivery in Delivery.objects.order_by("-id")[:limit]]


@atomic
def reset() -> None:
    """Forget every delivery, every fault and every key but the newest. For the reset of the simulation."""
    Delivery.objects.all().delete()
    faults.clear()
    signing.forget_rotations()


def _delivery(delivery: Delivery) -> dict[str, object]:
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
        "announcedAt": clock.stamp(delivery.announced_at),
        "dueAt": clock.stamp(delivery.due_at),
        "attempts": [_attempt(attempt) for attempt in attempts],
    }


def _attempt(attempt: Attempt) -> dict[str, object]:
    return {"at": clock.stamp(attempt.at), "status": attempt.status, "reason": attempt.reason}
