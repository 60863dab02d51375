"""What the sweeper does for notifications, in this process."""

from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from backoffice.notifications.jobs import JOBS
from backoffice.notifications.models import Channel, Message


def sweep() -> None:
    """One round of all jobs."""
    for job in JOBS.values():
        job()


def notices_of(person_id: int, channel: Channel = Channel.EMAIL) -> list[str]:
    """The notices stored for a person, in order."""
    found = Message.objects.filter(person=person_id, channel=channel).order_by("pk")
    return list(found.values_list("notice", flat=True))


def make_due(**age: float) -> None:
    """Make what waits due now; with `hours=…` also that much older."""
    Message.objects.filter(due_at__isnull=False).update(
        due_at=timezone.now(), created_at=F("created_at") - timedelta(**age)
    )


def later_by(length: timedelta) -> datetime:
    return timezone.now() + length
