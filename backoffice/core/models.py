"""The API keys that this installation calls the provider with, the leases, and the cached reads."""

import uuid

from django.db import models
from django.db.models import Q

from backoffice.core.encryption import EncryptedRow


class GatewayKey(EncryptedRow):
    """One API key known here: sealed, and either the one in use or a former one that was not ended yet.

    Without a row the key of the environment is in use. What is counted are calls since the switch to it, for as long
    as `is_counted` says so.
    """

    SEALED = "sealed"

    class State(models.TextChoices):
        """Whether the application calls with it."""

        IN_USE = "in_use", "In use"
        FORMER = "former", "Former"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    short_hash = models.CharField(
        max_length=64, blank=True
    )  # as the service lists it; empty where it never told
    made_by = models.UUIDField(null=True)  # the operation that made it
    state = models.CharField(max_length=8, choices=State)
    since = models.DateTimeField()
    sealed = models.BinaryField()

    is_counted = models.BooleanField(default=False)
    calls = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    last_refused_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        ordering = ("-since",)
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="in_use"), name="gateway_key_one_in_use"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["in_use", "former"]), name="gateway_key_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.short_hash}".strip()

    @property
    def bound_to(self) -> str:
        """What the key is sealed to: it opens in this row only."""
        return f"gateway-key:{self.pk}"

    @property
    def owner(self) -> str:
        """Whose it is, for people who must be told that it is lost."""
        return f"the API key {self}, {self.get_state_display().lower()}"


class NamedLease(models.Model):
    """When something that is read now and then may be read again: a row for each, moved on by compare-and-set."""

    what = models.CharField(max_length=20, primary_key=True)
    next_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"The next turn is at {self.next_at}"


class CachedReadRow(models.Model):
    """What the service told last in answer to one question, for when it cannot be asked. Kept for a day."""

    question = models.CharField(max_length=200, primary_key=True)
    value = models.TextField()  # JSON of the typed answer
    at = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.question
