"""The last known balances, and what they were. The service is the authority; these say what it said, and when."""

from django.db import models

from backoffice.core.fields import ExactDecimalField
from backoffice.ledger import mirrored as mirrored  # further tables: declared to Django by standing here


class Balance(models.Model):
    """One currency of the merchant, as the service last told it."""

    currency = models.CharField(max_length=12, primary_key=True)
    amount = ExactDecimalField()
    total_received = ExactDecimalField()
    total_sent = ExactDecimalField()
    transaction_count = models.BigIntegerField()
    as_of = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        permissions = [("view_transaction", "Can view transactions")]
        ordering = ("currency",)

    def __str__(self) -> str:
        return self.currency


class BalanceSnapshot(models.Model):
    """One currency as it was in one quarter of an hour; the first reading in it stays."""

    currency = models.CharField(max_length=12)
    slot = models.DateTimeField()  # the beginning of the quarter
    amount = ExactDecimalField()
    total_received = ExactDecimalField()
    total_sent = ExactDecimalField()
    transaction_count = models.BigIntegerField()
    as_of = models.DateTimeField()

    class Meta:
        default_permissions = ()
        ordering = ("-as_of", "-id")
        constraints = [
            models.UniqueConstraint(fields=["currency", "slot"], name="balance_snapshot_once_per_slot")
        ]
        indexes = [
            models.Index(fields=["slot"], name="balance_snapshot_by_slot"),
            models.Index(fields=["-as_of", "-id"], name="balance_snapshot_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.currency} at {self.as_of}"


class Turn(models.Model):
    """When something that is read now and then may be read again: a row for each, moved on by compare-and-set."""

    what = models.CharField(max_length=20, primary_key=True)
    next_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"The next turn is at {self.next_at}"


class Reading(models.Model):
    """What the service told last in answer to one question, for when it cannot be asked. Kept for a day."""

    question = models.CharField(max_length=200, primary_key=True)
    value = models.TextField()  # JSON of the typed answer
    at = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.question
