"""What reconciliation stores: one comparison per attempt or unrecognised transaction, sums by day, and its progress.

`reconciliation.rules` defines the verdicts; only `reconciliation.store` and `reconciliation.runner` write.
"""

from django.db import models
from django.db.models import Q

from backoffice.core.fields import DecimalSumField, ExactDecimalField, UnsignedDecimalField
from backoffice.operations.models.reason_codes import sentences


class ReconciliationResult(models.TextChoices):
    """What holding an operation of ours and a movement at the service against each other says."""

    MATCHED = "matched", "Matched"
    MISMATCHED = "mismatched", "Different"
    MISSING_AT_PROVIDER = "missing_at_provider", "Missing there"
    UNRECOGNISED = "unrecognised", "Unknown to us"
    PENDING = "pending", "Too early to tell"


ALARMING = frozenset(
    {
        ReconciliationResult.MISMATCHED,
        ReconciliationResult.MISSING_AT_PROVIDER,
        ReconciliationResult.UNRECOGNISED,
    }
)
MAY_STILL_APPEAR = Q(verdict=ReconciliationResult.PENDING) | Q(
    verdict=ReconciliationResult.MISSING_AT_PROVIDER, transaction__isnull=True
)
"""Comparisons that what no feed tells may change. Ask in these very words: there is an index of them."""


class Comparison(models.Model):
    """One attempt held against the mirror, or one movement there that no attempt of ours is.

    `day` (UTC), `currency`, `amount` and `fee` are those by which it counts in the totals: the service's where it lists
    the transaction, ours where it does not. `differences` says what differs, and by how much.
    """

    verdict = models.CharField(max_length=20, choices=ReconciliationResult)
    occurred_at = models.DateTimeField()
    day = models.DateField()
    currency = models.TextField()
    amount = UnsignedDecimalField()
    fee = ExactDecimalField(null=True)
    differences = models.JSONField(default=list, blank=True)  # codes, see `differences`
    needs_telling = models.BooleanField(
        default=False
    )  # people have to look at it, and no incident was raised yet
    attempt = models.OneToOneField(
        "operations.Attempt", on_delete=models.PROTECT, null=True, related_name="comparison"
    )
    transaction = models.OneToOneField(
        "ledger.Transaction", on_delete=models.PROTECT, null=True, related_name="comparison"
    )

    class Meta:
        default_permissions = ()
        ordering = ("-occurred_at", "-id")
        indexes = [
            models.Index(fields=["-occurred_at", "-id"], name="comparison_newest"),
            models.Index(fields=["verdict", "-occurred_at", "-id"], name="comparison_by_verdict"),
            models.Index(fields=["id"], name="comparison_needs_telling", condition=Q(needs_telling=True)),
            models.Index(fields=["id"], name="comparison_may_turn_up", condition=MAY_STILL_APPEAR),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(attempt__isnull=False) | Q(transaction__isnull=False),
                name="comparison_is_of_something",
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=ReconciliationResult.values), name="comparison_verdict_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_verdict_display()}: {self.currency} {self.amount}"

    @property
    def difference_sentence(self) -> str:
        """What differs, in words; empty if nothing does."""
        return sentences(self.differences)


class VerdictTotal(models.Model):
    """How many comparisons of one verdict and currency fall on one UTC day, amounts and fees added up exactly.

    Kept by difference in the transaction that writes the comparisons, so it always agrees with them.
    """

    day = models.DateField()
    currency = models.TextField()
    verdict = models.CharField(max_length=20, choices=ReconciliationResult)
    count = models.BigIntegerField()
    amount = DecimalSumField()
    fee = DecimalSumField()

    class Meta:
        default_permissions = ()
        ordering = ("-day", "currency", "verdict")
        constraints = [
            models.UniqueConstraint(fields=["day", "currency", "verdict"], name="verdict_total_once")
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.verdict} on {self.day}"


class ReconciliationState(models.Model):
    """How far it has come: one row. What it has seen of each feed, and where its walks through what is kept stand.

    Each feed is numbered in the order of its commits: the mirror's rows and changes by the mirror's lock, audit entries
    by the head of their chain.
    """

    begins_at = models.DateTimeField(null=True)  # what the service lists as earlier is before our time
    at = models.DateTimeField(null=True)  # the last round; null before the first has ended
    mirror_as_of = models.DateTimeField(null=True)  # how fresh the mirror was then
    rows_to = models.BigIntegerField(default=0)
    changes_to = models.BigIntegerField(default=0)
    entries_to = models.BigIntegerField(default=0)

    # Null while no walk is under way: it begins anew a day after the last one began.
    walk_begun_at = models.DateTimeField(null=True)
    walk_attempts_to = models.BigIntegerField(null=True)
    walk_rows_to = models.BigIntegerField(null=True)

    # The walks through what is open, of which no feed tells. Null: the next one begins with the first.
    early_rows_to = models.BigIntegerField(null=True)
    going_on_to = models.BigIntegerField(null=True)
    may_turn_up_to = models.BigIntegerField(null=True)
    may_turn_up_as_of = models.DateTimeField(null=True)  # how fresh the mirror was when that one began

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="reconciliation_one_row")]

    def __str__(self) -> str:
        return f"reconciled at {self.at}"
