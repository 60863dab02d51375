"""The metrics of notifications."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q
from prometheus_client.core import GaugeMetricFamily

from backoffice.notifications.models import Channel, Message


def notification_metrics(now: datetime) -> Iterator[GaugeMetricFamily]:
    """For each channel: messages that are due, that were given up, and the age of the oldest due one."""
    late = Q(due_at__lte=now) | Q(tries__gt=0, due_at__isnull=False)
    counted = Message.objects.filter(Q(due_at__isnull=False) | Q(given_up_at__isnull=False)).order_by()
    found: dict[str, dict[str, Any]] = {
        row["channel"]: {**row}
        for row in counted.values("channel").annotate(
            due=Count("pk", filter=late),
            given_up=Count("pk", filter=Q(given_up_at__isnull=False)),
            oldest=Min("created_at", filter=late),
        )
    }
    due = _family("notifications_due", "Notifications to be delivered now, or again after a failed try")
    given_up = _family("notifications_given_up", "Notifications that were given up in the last 90 days")
    age = _family(
        "notifications_oldest_due_age_seconds", "Time since the oldest of the due ones was stored; 0 if none"
    )
    for channel in Channel:
        row = found.get(channel.value, {})
        due.add_metric([channel], row.get("due", 0))
        given_up.add_metric([channel], row.get("given_up", 0))
        oldest = row.get("oldest")
        age.add_metric([channel], (now - oldest).total_seconds() if oldest else 0)
    yield from (due, given_up, age)


def _family(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"countersign_{name}", text, labels=["channel"])
