"""The sweeper's sign of life, for the metrics."""

from datetime import timedelta

from backoffice.core import clock
from backoffice.operations.oversight import Heartbeat

EVERY = timedelta(seconds=5)


def note_round(job: str) -> None:
    """Keep that a job of the sweeper has just ended a round; written down every few seconds at most."""
    now = clock.now()
    last = Heartbeat.objects.filter(job=job).first()
    if last is None:
        Heartbeat.objects.bulk_create([Heartbeat(job=job, at=now)], ignore_conflicts=True)
    elif now - last.at >= EVERY:
        Heartbeat.objects.filter(job=job).update(at=now)
