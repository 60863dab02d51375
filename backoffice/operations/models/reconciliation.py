"""What reconciliation stores: one comparison per attempt or unrecognised transaction, sums by day, and its progress.

`reconciliation.rules` defines the results; only `reconciliation.store` and `reconciliation.runner` write.
"""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from backoffice.core.fields import DecimalSumField, ExactDecimalField, UnsignedDecimalField
from backoffice.core.web.formatting import in_words
from backoffice.operations.models.reason_codes import differences_sentence


class ReconciliationResult(models.TextChoices):
    """The result of comparing an attempt with the provider's transactions."""

    MATCHED = "matched", _("Matched")
    MISMATCHED = "mismatched", _("Mismatched")
    MISSING_AT_PROVIDER = "missing_at_provider", _("Missing at provider")
    UNRECOGNISED = "unrecognised", _("Unrecognised")
    PENDING = "pending", _("Pending")


ALARMING = frozenset(
    {
        ReconciliationResult.MISMATCHED,
        ReconciliationResult.MISSING_AT_PROVIDER,
        ReconciliationResult.UNRECOGNISED,
    }
)
MAY_STILL_APPEAR = Q(result=ReconciliationResult.PENDING) | Q(
    result=ReconciliationResult.MISSING_AT_PROVIDER, transaction__isnull=True
)
"""Comparisons that can change without an event in a feed. Use it unchanged, so that its index applies."""


class Comparison(models.Model):
    """The comparison of one attempt with the mirror, or one mirrored transaction that no attempt has claimed.

    `day` (UTC), `currency`, `amount` and `fee` are the values it adds to the totals: the provider's if it
    lists the transaction, ours otherwise. `differences` holds what differs, and by how much.
    """

    result = models.CharField(max_length=20, choices=ReconciliationResult)
    occurred_at = models.DateTimeField()
    day = models.DateField()
    currency = models.TextField()
    amount = UnsignedDecimalField()
    fee = ExactDecimalField(null=True)
    differences = models.JSONField(default=list, blank=True)  # see `reason_codes.Difference`
    # Ids of the closed attempts for which the provider may have made this debit besides what is on record.
    resembles = models.JSONField(default=list, blank=True)
    # Set while an incident has to be raised for it.
    needs_incident = models.BooleanField(default=False)
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
            models.Index(fields=["result", "-occurred_at", "-id"], name="comparison_by_result"),
            models.Index(fields=["id"], name="comparison_needs_incident", condition=Q(needs_incident=True)),
            models.Index(fields=["id"], name="comparison_may_still_appear", condition=MAY_STILL_APPEAR),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(attempt__isnull=False) | Q(transaction__isnull=False),
                name="comparison_is_of_something",
            ),
            models.CheckConstraint(
                condition=Q(result__in=ReconciliationResult.values), name="comparison_result_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_result_display()}: {self.currency} {self.amount}"

    @property
    def difference_sentence(self) -> str:
        """The differences in words; empty if there are none."""
        return in_words(differences_sentence, self.differences)


class ReconciliationTotal(models.Model):
    """The count, amounts and fees of the comparisons of one result, currency and UTC day; exact sums.

    Updated by difference in the transaction that writes the comparisons, so it always agrees with them.
    """

    day = models.DateField()
    currency = models.TextField()
    result = models.CharField(max_length=20, choices=ReconciliationResult)
    count = models.BigIntegerField()
    amount = DecimalSumField()
    fee = DecimalSumField()

    class Meta:
        default_permissions = ()
        ordering = ("-day", "currency", "result")
        constraints = [
            models.UniqueConstraint(fields=["day", "currency", "result"], name="reconciliation_total_once")
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.result} on {self.day}"


class ReconciliationState(models.Model):
    """The progress of reconciliation: one row with the position in each feed and pass.

    Each feed is numbered in commit order: the mirror's rows and changes by the mirror's lock, audit entries
    by the head of their chain.
    """

    # earlier transactions at the provider are not compared
    begins_at = models.DateTimeField(null=True)
    at = models.DateTimeField(null=True)  # the last round; null before the first has ended
    mirror_as_of = models.DateTimeField(null=True)  # the mirror's `as_of` in that round
    rows_to = models.BigIntegerField(default=0)
    changes_to = models.BigIntegerField(default=0)
    entries_to = models.BigIntegerField(default=0)

    # Positions of the full pass; null once it is complete. It starts again a day after its last start.
    full_pass_begun_at = models.DateTimeField(null=True)
    full_pass_attempts_to = models.BigIntegerField(null=True)
    full_pass_rows_to = models.BigIntegerField(null=True)

    # Positions in the passes over pending and missing comparisons; null means from the beginning.
    pending_rows_to = models.BigIntegerField(null=True)
    open_attempts_to = models.BigIntegerField(null=True)
    unlisted_to = models.BigIntegerField(null=True)
    # the mirror's `as_of` when the pass over missing comparisons began
    unlisted_as_of = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="reconciliation_one_row")]

    def __str__(self) -> str:
        return f"reconciled at {self.at}"
