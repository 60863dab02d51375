"""The switch that stops all sending: one person pulls it alone and at once, two people release it.

Reads only; `services.pause_sending` pulls it, an operation of kind `resume` releases it.
"""

import time

from django.db import models
from django.db.models import Q

from backoffice.accounts.models import User

REMEMBERED_SECONDS = 1.0


class Pause(models.Model):
    """One time during which nothing is sent. It stands until an operation that two people signed ends it."""

    paused_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    paused_at = models.DateTimeField()
    reason = models.CharField(max_length=500)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.OneToOneField(
        "operations.Operation", on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                models.expressions.Value(1), condition=Q(ended_at__isnull=True), name="pause_stands_once"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                | Q(ended_at__isnull=False, ended_by__isnull=False),
                name="pause_ended_by_two_people",
            ),
        ]

    def __str__(self) -> str:
        return "the sending of everything"


class _Memory:
    """What this process read last for its pages, and until when it counts."""

    pause: Pause | None = None
    until: float = float("-inf")


def is_paused() -> bool:
    """Whether nothing may be sent now, as the database says at this moment."""
    return Pause.objects.filter(ended_at__isnull=True).exists()


def standing_pause() -> Pause | None:
    """The pause that stands now, with who pulled it."""
    return Pause.objects.select_related("paused_by").filter(ended_at__isnull=True).first()


def pause_on_pages() -> Pause | None:
    """The same for the frame of every page, at most a second old. What sends never asks this."""
    now = time.monotonic()
    if now >= _Memory.until:
        _Memory.pause = standing_pause()
        _Memory.until = now + REMEMBERED_SECONDS
    return _Memory.pause


def forget() -> None:
    """Read it anew for the next page of this process."""
    _Memory.until = float("-inf")
