"""Tables of the ledger: balances and their snapshots, and the mirror of the provider's transactions.

The provider is the authority; people edit nothing here. `balances` writes balances, `mirror` everything else.
"""

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from backoffice.core.database.writes import APPEND_ONLY, NEVER_DELETED
from backoffice.core.fields import DecimalSumField, ExactDecimalField, UnsignedDecimalField
from backoffice.core.web.formatting import format_amount
from payments_gateway import TransactionRecord

CONVERSION = "conversion"
TYPE_LABELS = {
    "deposit": pgettext_lazy("one transaction", "Deposit"),
    "withdrawal": pgettext_lazy("one transaction", "Withdrawal"),
    "sent": pgettext_lazy("one transaction", "Crypto sent"),
    "transfer": pgettext_lazy("one transaction", "Transfer"),
    "internalTransfer": pgettext_lazy("one transaction", "Internal transfer"),
    CONVERSION: pgettext_lazy("one transaction", "Conversion"),
}
STATUS_LABELS = {
    "fulfilled": pgettext_lazy("transaction status", "Completed"),
    "processing": pgettext_lazy("transaction status", "Processing"),
    "failed": pgettext_lazy("transaction status", "Failed"),
}
"""The words of the specification for people. Any other word is shown as the provider writes it."""


class Balance(models.Model):
    """One currency of the merchant, as last reported by the provider. A total that it does not report is null."""

    currency = models.CharField(max_length=12, primary_key=True)
    amount = ExactDecimalField()
    total_received = ExactDecimalField(null=True)
    total_sent = ExactDecimalField(null=True)
    transaction_count = models.BigIntegerField(null=True)
    as_of = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        permissions = [("view_transaction", "Can view transactions")]
        ordering = ("currency",)

    def __str__(self) -> str:
        return self.currency


class BalanceSnapshot(models.Model):
    """The balance of one currency in one quarter-hour; the first reading of the quarter-hour is kept.

    A total that the provider does not report is null.
    """

    currency = models.CharField(max_length=12)
    slot = models.DateTimeField()  # the beginning of the quarter-hour
    amount = ExactDecimalField()
    total_received = ExactDecimalField(null=True)
    total_sent = ExactDecimalField(null=True)
    transaction_count = models.BigIntegerField(null=True)
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


UNPLACEABLE = Q(previous_balance__isnull=True) | Q(created_at__isnull=True) | Q(direction="")
"""Records that cannot be placed in the balance chain. Use exactly this condition: a partial index has it."""


class Facet(models.Model):
    """One combination of currency, type, status and direction that occurs or occurred: a few hundred rows."""

    id = models.AutoField(primary_key=True)
    currency = models.TextField()
    type = models.TextField()
    status = models.TextField()
    direction = models.TextField()  # "in", "out", or empty if unknown (mirror/rows.py)

    class Meta:
        default_permissions = ()
        ordering = ("currency", "type", "status", "direction")
        constraints = [
            models.UniqueConstraint(fields=["currency", "type", "status", "direction"], name="facet_once")
        ]

    def __str__(self) -> str:
        return " ".join(text or "none" for text in (self.currency, self.type, self.status, self.direction))


class Transaction(models.Model):
    """One record of the provider's list, as last reported.

    Its facet's values are repeated, for reading and for CSV.

    `amount` is unsigned: `direction` shows whether it was received or sent. `occurred_at` is the provider's
    `created_at`, or the time the record was first seen if the provider gives none. Lists sort by it or by the
    amount, then by `id`. A record that is missing at the provider is kept, with `missing_since`.
    """

    WRITES = NEVER_DELETED
    TRIGGERS_INSERT_INTO = ("ledger_names",)
    CALLS_AS_OWNER = ("ledger_analyze_mirror",)

    id = models.BigAutoField(primary_key=True)
    transaction_id = models.TextField()
    # No database constraint: only the sync writes both tables, one of which has ten million rows.
    facet = models.ForeignKey(
        Facet, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    currency = models.TextField()
    type = models.TextField()
    status = models.TextField()
    direction = models.TextField()

    occurred_at = models.DateTimeField()
    created_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(null=True)
    date = models.TextField()

    amount = UnsignedDecimalField()
    fee = ExactDecimalField(null=True)
    previous_balance = ExactDecimalField(null=True)
    sender_previous_balance = ExactDecimalField(null=True)
    from_amount = ExactDecimalField(null=True)
    from_currency = models.TextField()

    sender = models.TextField()
    username = models.TextField()
    counterparty = models.TextField()  # the other party's name (mirror/rows.py)
    is_from_registered_user = models.BooleanField(null=True)
    business_id = models.TextField()
    version = models.TextField()

    digest = models.BinaryField()  # of all reported fields: an unchanged row is not written
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField(null=True)
    missing_since = models.DateTimeField(null=True)  # a whole full pass did not contain it

    class Meta:
        default_permissions = ()  # "view_transaction" is declared on Balance
        ordering = ("-occurred_at", "-id")
        constraints = [models.UniqueConstraint(fields=["transaction_id"], name="transaction_once")]
        indexes = [
            models.Index(fields=["-occurred_at", "-id"], name="transaction_newest"),
            # Each facet in list order, with the other columns that filters need
            # (transactions/query_planner.py).
            models.Index(fields=["facet", "occurred_at", "id", "amount"], name="transaction_by_facet"),
            models.Index(fields=["facet", "amount", "id", "occurred_at"], name="transaction_by_amount"),
            models.Index(fields=["currency", "occurred_at", "id"], name="transaction_by_currency"),
            models.Index(
                fields=["currency", "occurred_at"], name="transaction_unplaceable", condition=UNPLACEABLE
            ),
            models.Index(
                fields=["missing_since"],
                name="transaction_missing",
                condition=Q(missing_since__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.transaction_id

    @property
    def type_label(self) -> str:
        """The type in words; empty if the provider gives none."""
        return str(TYPE_LABELS.get(self.type, self.type))

    @property
    def status_label(self) -> str:
        """The status in words; empty if the provider gives none."""
        return str(STATUS_LABELS.get(self.status, self.status))

    def as_record(self) -> TransactionRecord:
        """The row as the client returns a record of the provider's list."""
        values = {name: getattr(self, name) for name in TransactionRecord.model_fields}
        return TransactionRecord.model_construct(**values)


class TransactionChange(models.Model):
    """The fields of a record that changed, before and after, as texts.

    Append-only: database triggers reject updates and deletes.
    """

    WRITES = APPEND_ONLY

    transaction = models.ForeignKey(Transaction, on_delete=models.PROTECT, related_name="changes")
    seen_at = models.DateTimeField()
    before = models.JSONField()
    after = models.JSONField()

    class Meta:
        default_permissions = ()
        ordering = ("-seen_at", "-id")
        indexes = [models.Index(fields=["-seen_at", "-id"], name="transaction_change_newest")]

    def __str__(self) -> str:
        return ", ".join(self.after)


class DayTotal(models.Model):
    """Count and exact sums of the transactions of one facet on one UTC day.

    Missing transactions do not count. Updated by the difference in the transaction that writes the rows, so
    it always agrees with them.
    """

    day = models.DateField()
    facet = models.ForeignKey(Facet, on_delete=models.PROTECT, related_name="+", db_index=False)
    count = models.BigIntegerField()
    amount = DecimalSumField()
    fee = DecimalSumField()

    class Meta:
        default_permissions = ()
        ordering = ("-day", "facet")
        constraints = [models.UniqueConstraint(fields=["day", "facet"], name="day_total_once")]
        indexes = [models.Index(fields=["facet", "day"], name="day_total_by_facet")]

    def __str__(self) -> str:
        return f"{self.count} on {self.day}"


class BalanceBreak(models.Model):
    """A break of the balance chain: `after` starts with another balance than `before` left.

    Updated in the transaction that writes the rows, so it always agrees with them (statements/breaks.py).
    `difference` is unsigned: `direction` shows which way money moved that no record explains.
    """

    class Kind(models.TextChoices):
        """The likely cause of a break."""

        GAP = "gap", _("Missing transaction")
        VANISHED = "vanished", _("Transaction no longer listed")
        CHANGED = "changed", _("Transaction changed")
        FEE = "fee", _("Fee not deducted")
        UNMOVED = "unmoved", _("Balance not changed")

    currency = models.TextField()
    at = models.DateTimeField()  # when `after` occurred
    kind = models.CharField(max_length=8, choices=Kind)
    expected = DecimalSumField()
    found = ExactDecimalField()
    difference = DecimalSumField()
    direction = models.TextField()  # "in" if more was found than expected, otherwise "out"
    before = models.ForeignKey(Transaction, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    after = models.OneToOneField(
        Transaction, on_delete=models.CASCADE, related_name="broken_chain", db_constraint=False
    )
    detected_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        ordering = ("-at", "-id")
        indexes = [
            models.Index(fields=["currency", "at", "id"], name="break_by_currency"),
            models.Index(fields=["-at", "-id"], name="break_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.currency} {self.at}: {self.kind}"

    @property
    def explanation(self) -> str:
        """The cause in one sentence."""
        amount = f"{self.currency} {format_amount(self.difference, self.currency)}"
        key = BalanceBreak.Kind(self.kind), "in" if self.direction == "in" else "out"
        return str(_EXPLANATIONS[key]).format(amount=amount)

    @property
    def signed_difference(self) -> Decimal:
        """The difference, negative if less was found than expected."""
        difference: Decimal = self.difference
        return difference if self.direction == "in" else -difference


_FEE_NOT_DEDUCTED = _("The fee of the first transaction, {amount}, was not deducted.")
_BALANCE_UNCHANGED = _("The balance did not change after the first transaction.")
_EXPLANATIONS = {
    (BalanceBreak.Kind.GAP, "in"): _(
        "The balance rose by {amount} between the two transactions, and no transaction explains it."
    ),
    (BalanceBreak.Kind.GAP, "out"): _(
        "The balance fell by {amount} between the two transactions, and no transaction explains it."
    ),
    (BalanceBreak.Kind.VANISHED, "in"): _(
        "The balance rose by {amount}, the amount of a transaction that the provider no longer lists."
    ),
    (BalanceBreak.Kind.VANISHED, "out"): _(
        "The balance fell by {amount}, the amount of a transaction that the provider no longer lists."
    ),
    (BalanceBreak.Kind.CHANGED, "in"): _(
        "The balance rose by {amount} without a transaction, and the provider changed one of the two transactions."
    ),
    (BalanceBreak.Kind.CHANGED, "out"): _(
        "The balance fell by {amount} without a transaction, and the provider changed one of the two transactions."
    ),
    (BalanceBreak.Kind.FEE, "in"): _FEE_NOT_DEDUCTED,
    (BalanceBreak.Kind.FEE, "out"): _FEE_NOT_DEDUCTED,
    (BalanceBreak.Kind.UNMOVED, "in"): _BALANCE_UNCHANGED,
    (BalanceBreak.Kind.UNMOVED, "out"): _BALANCE_UNCHANGED,
}


class ContinuityCheck(models.Model):
    """The progress of the daily check of one currency's stored breaks against its rows."""

    currency = models.TextField(primary_key=True)
    checked_until = models.DateTimeField(null=True)  # checked up to here; None between two checks
    completed_at = models.DateTimeField(null=True)  # end of the last complete check

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.currency} up to {self.checked_until or 'its end'}"


class Mirror(models.Model):
    """The state of the sync: one row. All times but `provider_time` are by the database's clock.

    A *round* reads the newest pages up to a run of known records. A *pass* reads further, page by page over
    many turns, and resumes after a crash: `pass_page` is the next page of the full pass, `day_page` that of
    the day pass, which progresses independently.
    """

    class Depth(models.TextChoices):
        """The purpose of a full pass."""

        WHOLE = "whole", "the whole list"
        COUNT = "count", "the whole list, noting each record, to find those that left it"

    rows = models.BigIntegerField(default=0)
    provider_count = models.BigIntegerField(null=True)  # the provider's last count
    as_of = models.DateTimeField(null=True)  # start of the last successful round
    provider_time = models.DateTimeField(null=True)  # the provider's clock then
    loaded_at = models.DateTimeField(null=True)  # when the whole list was mirrored for the first time
    error = models.JSONField(default=dict)  # `stored_error` of the last sync; empty after a success
    error_at = models.DateTimeField(null=True)

    round_begun_at = models.DateTimeField(null=True)  # start of an unfinished round (mirror/passes.py)
    sync_requested_at = models.DateTimeField(null=True)  # when a round was last requested

    pass_depth = models.CharField(max_length=5, choices=Depth, blank=True)  # empty between passes
    pass_begun_at = models.DateTimeField(null=True)
    pass_page = models.BigIntegerField(default=1)
    pass_pages = models.BigIntegerField(default=0)
    pass_total = models.BigIntegerField(default=0)
    pass_read = models.BigIntegerField(default=0)  # records, including those of pages read again
    pass_tries = models.PositiveSmallIntegerField(default=0)  # passes that ended with too few rows
    full_pass_ended_at = models.DateTimeField(null=True)  # end of the last full pass
    full_pass_begun_at = models.DateTimeField(null=True)  # start of the last full pass

    day_begun_at = models.DateTimeField(null=True)  # empty between passes
    day_page = models.BigIntegerField(default=1)
    day_total = models.BigIntegerField(default=0)
    day_pass_begun_at = models.DateTimeField(null=True)  # start of the last completed day pass

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="mirror_one_row")]

    def __str__(self) -> str:
        return f"{self.rows} transactions as of {self.as_of}"


class Sighting(models.Model):
    """A transaction seen in the provider's list since the current `COUNT` pass began.

    Empty between such passes.
    """

    transaction_id = models.BigIntegerField(primary_key=True)  # the transaction's primary key

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.transaction_id)
