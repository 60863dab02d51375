"""Tables of the ledger: balances and their snapshots, and the mirror of the provider's transactions.

The provider is the authority; nothing here is edited by people. `balances` writes balances, `mirror` everything else.
"""

from decimal import Decimal

from django.db import models
from django.db.models import Q

from backoffice.core.fields import DecimalSumField, ExactDecimalField, UnsignedDecimalField
from backoffice.core.web.formatting import format_amount


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


FINAL_STATUSES = ("fulfilled", "failed")
"""The statuses after which the service is not expected to change a record. All others are looked for again."""

UNPLACEABLE = Q(previous_balance__isnull=True) | Q(created_at__isnull=True) | Q(direction="")
"""Records that cannot be placed in the chain. Ask in these very words: there is an index of them."""


class Facet(models.Model):
    """One combination of currency, type, status and direction that some transaction has or had: a few hundred rows."""

    id = models.AutoField(primary_key=True)
    currency = models.TextField()
    type = models.TextField()
    status = models.TextField()
    direction = models.TextField()  # "in", "out", or empty where nothing tells (ledger/direction.py)

    class Meta:
        default_permissions = ()
        ordering = ("currency", "type", "status", "direction")
        constraints = [
            models.UniqueConstraint(fields=["currency", "type", "status", "direction"], name="facet_once")
        ]

    def __str__(self) -> str:
        return " ".join(text or "none" for text in (self.currency, self.type, self.status, self.direction))


class Transaction(models.Model):
    """One record of the service's list, as last told. Its four facets stand here again, for reading and for CSV.

    `amount` carries no sign: `direction` tells which way it went. `occurred_at` is the service's `created_at`, or the
    moment at which the record was first seen where the service tells none. Lists sort by it or by the amount, then by
    `id`. A record that left the service's list stays, with `missing_since`.
    """

    id = models.BigAutoField(primary_key=True)
    transaction_id = models.TextField()
    # No constraint in the database: the sync alone writes both tables, ten million rows of one.
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
    counterparty = models.TextField()  # who was at the other end (ledger/direction.py)
    is_from_registered_user = models.BooleanField(null=True)
    business_id = models.TextField()
    version = models.TextField()

    digest = models.BinaryField()  # of all members as told: a row whose digest is told again is not written
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField(null=True)
    missing_since = models.DateTimeField(null=True)  # a whole reading of the service's list was without it

    class Meta:
        default_permissions = ()  # "view_transaction" is declared with the balances
        ordering = ("-occurred_at", "-id")
        constraints = [models.UniqueConstraint(fields=["transaction_id"], name="transaction_once")]
        indexes = [
            models.Index(fields=["-occurred_at", "-id"], name="transaction_newest"),
            # Each facet in the order of lists, with what its rows are besides asked for (walking.py).
            models.Index(fields=["facet", "occurred_at", "id", "amount"], name="transaction_by_facet"),
            models.Index(fields=["facet", "amount", "id", "occurred_at"], name="transaction_by_amount"),
            models.Index(fields=["currency", "occurred_at", "id"], name="transaction_by_currency"),
            models.Index(
                fields=["currency", "occurred_at"], name="transaction_untold", condition=UNPLACEABLE
            ),
            models.Index(
                fields=["missing_since"],
                name="transaction_missing",
                condition=Q(missing_since__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.transaction_id


class TransactionChange(models.Model):
    """What a record said before it changed and what it says since: the changed members alone, as texts.

    Never updated and never deleted: database triggers refuse both.
    """

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
    """How many transactions of one facet occurred on one day in UTC, and their amounts and fees added up exactly.

    Those that the service lists no more do not count. Kept by difference in the transaction that writes the rows, so it
    always agrees with them.
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
    """A place where the chain of balances breaks: `after` begins with another balance than `before` left.

    Kept by the transaction that writes the rows, so it always agrees with them (books/breaks.py). `difference` carries
    no sign: its `direction` is the way that money went of which no record tells.
    """

    class Kind(models.TextChoices):
        """What is known of it."""

        GAP = "gap", "Something is missing"
        VANISHED = "vanished", "A record has left the list"
        CHANGED = "changed", "A record was changed"
        FEE = "fee", "A fee was not taken"
        UNMOVED = "unmoved", "A record moved nothing"

    currency = models.TextField()
    at = models.DateTimeField()  # when `after` occurred
    kind = models.CharField(max_length=8, choices=Kind)
    expected = DecimalSumField()
    found = ExactDecimalField()
    difference = DecimalSumField()
    direction = models.TextField()  # "in" where more was found than expected, otherwise "out"
    before = models.ForeignKey(Transaction, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    after = models.OneToOneField(
        Transaction, on_delete=models.CASCADE, related_name="broken_chain", db_constraint=False
    )
    noticed_at = models.DateTimeField()

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
        """What it means, in a sentence."""
        went = "came in" if self.direction == "in" else "went out"
        amount = f"{self.currency} {format_amount(self.difference, self.currency)}"
        return _EXPLANATIONS[self.kind].format(amount=amount, went=went)

    @property
    def signed(self) -> Decimal:
        """The difference, with a minus where less was found than expected."""
        difference: Decimal = self.difference
        return difference if self.direction == "in" else -difference


_EXPLANATIONS: dict[str, str] = {
    BalanceBreak.Kind.GAP: "{amount} {went} between the two that no transaction tells of.",
    BalanceBreak.Kind.VANISHED: (
        "{amount} {went}, as much as a transaction between the two that the service lists no more."
    ),
    BalanceBreak.Kind.CHANGED: (
        "{amount} {went} that no transaction tells of; one of the two told something else before."
    ),
    BalanceBreak.Kind.FEE: "The balance went on as if the fee of the first, {amount}, had not been taken.",
    BalanceBreak.Kind.UNMOVED: "The balance went on as if the first had moved nothing.",
}


class ContinuityCheck(models.Model):
    """How far the chain of one currency has been held against its rows, from the beginning, once a day."""

    currency = models.TextField(primary_key=True)
    reached = models.DateTimeField(null=True)  # what is before it is done; None between two checks
    whole_at = models.DateTimeField(null=True)  # when the last one came to its end

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.currency} up to {self.reached or 'its end'}"


class Mirror(models.Model):
    """How the sync stands: one row. All times but `service_time` are the database's.

    A *round* reads the newest pages until it meets a stretch that it knows. A *pass* goes deeper, page by page over
    many rounds, and a killed process goes on where it was: `pass_page` is the page to be read next, and `day_page`
    that of the pass through the last day, which goes on beside it.
    """

    class Depth(models.TextChoices):
        """What a pass through the whole list is for."""

        WHOLE = "whole", "the whole list"
        COUNT = "count", "the whole list, noting each record, to find those that left it"

    rows = models.BigIntegerField(default=0)
    listed = models.BigIntegerField(null=True)  # how many the service counted last
    as_of = models.DateTimeField(null=True)  # when the last round that succeeded began
    service_time = models.DateTimeField(null=True)  # the service's own clock then
    loaded_at = models.DateTimeField(null=True)  # when the whole list was here for the first time
    problem = models.TextField(blank=True)  # why the last attempt failed; empty after one that succeeded
    problem_at = models.DateTimeField(null=True)

    round_begun_at = models.DateTimeField(null=True)  # of a round that has not ended: see `newest`
    wanted_at = models.DateTimeField(null=True)  # somebody asked for a round at this moment
    lease_holder = models.UUIDField(null=True)
    lease_since = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)

    pass_depth = models.CharField(max_length=5, choices=Depth, blank=True)  # empty between passes
    pass_begun_at = models.DateTimeField(null=True)
    pass_page = models.BigIntegerField(default=1)
    pass_pages = models.BigIntegerField(default=0)
    pass_total = models.BigIntegerField(default=0)
    pass_read = models.BigIntegerField(default=0)  # records, those of pages that were read again included
    pass_tries = models.PositiveSmallIntegerField(default=0)  # how often it ended with less than was counted
    whole_at = models.DateTimeField(null=True)  # when the last pass through the whole list ended
    whole_begun_at = models.DateTimeField(null=True)  # and when it had begun

    day_begun_at = models.DateTimeField(null=True)  # empty between passes
    day_page = models.BigIntegerField(default=1)
    day_total = models.BigIntegerField(default=0)
    day_at = models.DateTimeField(null=True)  # when the last one that came to its end began

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="mirror_one_row")]

    def __str__(self) -> str:
        return f"{self.rows} transactions as of {self.as_of}"


class Sighting(models.Model):
    """A transaction that the service's list had since the present `COUNT` pass began. Empty between such passes."""

    transaction_id = models.BigIntegerField(primary_key=True)  # the row's `id`

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.transaction_id)
