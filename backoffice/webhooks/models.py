"""Webhook deliveries received: each once, with the verdict on its signature and how often it was received."""

from django.db import models
from django.db.models import Q, TextChoices
from django.urls import reverse

from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH


class DeliveryVerification(TextChoices):
    """What its signature says. All but the first start nothing."""

    VALID = "valid", "Valid"
    INVALID = "invalid", "Invalid"
    UNSIGNED = "unsigned", "Unsigned"
    MALFORMED = "malformed", "Malformed"
    UNVERIFIED = "unverified", "Not verified"  # no key is configured to verify it with


class Delivery(models.Model):
    """One delivery, however often it came. It is a hint: no state of money follows from it.

    `identity` is its data with its signature, or the whole body where that is not signed: what comes with the same is a
    repeat, whatever else it says. Kept is the first body, or the first that was valid, `digest` being its SHA-256.
    `valid_at` is when it first came with a signature that a key known by then confirms, null as long as none did.
    `wanted_at` is since when the service is to be read again because of it, null when that was done or is not wanted;
    `looked_at` when that was last taken up.
    """

    identity = models.CharField(max_length=64, unique=True)
    digest = models.CharField(max_length=64)
    received_at = models.DateTimeField()
    last_at = models.DateTimeField()
    times = models.PositiveIntegerField(default=1)
    verdict = models.CharField(max_length=16, choices=DeliveryVerification)
    problem = models.CharField(max_length=300, blank=True)
    key = models.CharField(max_length=64, blank=True)  # the fingerprint of the key that signed it
    event = models.CharField(max_length=200, blank=True)
    transaction_id = models.CharField(max_length=TRANSACTION_ID_LENGTH, blank=True)
    reference = models.CharField(max_length=200, blank=True)
    body = models.BinaryField()
    valid_at = models.DateTimeField(null=True)
    wanted_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["-received_at", "-id"], name="delivery_newest_first"),
            models.Index(
                fields=["valid_at"], condition=Q(valid_at__isnull=False), name="delivery_valid_by_time"
            ),
            models.Index(
                fields=["id"], condition=~Q(verdict=DeliveryVerification.VALID), name="delivery_not_valid"
            ),
            models.Index(fields=["id"], condition=Q(wanted_at__isnull=False), name="delivery_wanted"),
        ]

    def __str__(self) -> str:
        return f"the webhook {self.event or 'without an event'} {self.digest[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("webhooks:delivery", args=[self.pk])
