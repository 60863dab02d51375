"""Signing keys, deliveries, delivery attempts, and the delivery faults in force."""

from typing import ClassVar

from django.db import models
from django.db.models import Q


class SigningKey(models.Model):
    """A private RSA key of the provider. The newest signs; for a while after a rotation, so does the
    previous.
    """

    id = models.BigAutoField(primary_key=True)
    private_pem = models.TextField()
    made_at = models.DateTimeField()

    objects: ClassVar["models.Manager[SigningKey]"] = models.Manager()

    def __str__(self) -> str:
        return f"signing key {self.id}"


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "waiting"
    HELD = "held", "held"
    DELIVERED = "delivered", "delivered"
    GIVEN_UP = "given up", "given up"
    NOT_DELIVERED = "not delivered", "not delivered"


class Forgery(models.TextChoices):
    """Ways in which a delivery can be forged on demand."""

    WRONG_SIGNATURE = "wrong_signature", "random bytes for a signature"
    STRANGER = "stranger", "signed by a key that nobody knows"
    UNSIGNED = "unsigned", "no signature"
    MALFORMED = "malformed", "a body that is cut in the middle"
    TAMPERED_DATA = "tampered_data", "data changed after signing"
    TAMPERED_EVENT = "tampered_event", "event changed after signing: the signature does not cover it"


class Delivery(models.Model):
    """One delivery to the callback URL, as set when the delivery was created.

    `data` is the JSON text that is signed. `body` is what is sent, the same in every attempt; empty before
    the first. Both times are by the provider's clock.
    """

    id = models.BigAutoField(primary_key=True)
    event = models.CharField(max_length=80)
    data = models.TextField()
    url = models.TextField()
    announced_at = models.DateTimeField()
    state = models.CharField(max_length=16, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    reason = models.TextField(default="")
    due_at = models.DateTimeField()
    place = models.BigIntegerField(null=True)
    copies = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    forgery = models.CharField(max_length=16, choices=Forgery.choices, default="")
    body = models.TextField(default="")

    objects: ClassVar["models.Manager[Delivery]"] = models.Manager()

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state=DeliveryState.WAITING), name="delivery_still_waiting"
            )
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.state}"


class Attempt(models.Model):
    """One attempt to deliver: the HTTP status of the response, or None and a reason."""

    id = models.BigAutoField(primary_key=True)
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    status = models.PositiveIntegerField(null=True)
    reason = models.TextField(default="")

    objects: ClassVar["models.Manager[Attempt]"] = models.Manager()

    def __str__(self) -> str:
        return f"{self.status or self.reason}"


class DeliveryFaultKind(models.TextChoices):
    DUPLICATE = "duplicate", "sent more than once"
    REORDER = "reorder", "held, then sent in reverse"
    DELAY = "delay", "sent late"
    FORGE = "forge", "forged"


class DeliveryFault(models.Model):
    """A fault of the next `left` deliveries; `applied` counts those that had it since the last reset."""

    kind = models.CharField(max_length=16, choices=DeliveryFaultKind.choices, primary_key=True)
    left = models.PositiveIntegerField(default=0)
    applied = models.PositiveIntegerField(default=0)
    copies = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    forgery = models.CharField(max_length=16, choices=Forgery.choices, default="")

    objects: ClassVar["models.Manager[DeliveryFault]"] = models.Manager()

    def __str__(self) -> str:
        return f"{self.kind} for {self.left}"
