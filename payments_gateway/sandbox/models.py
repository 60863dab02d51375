"""The books of the simulation. All amounts are integers in minor units of the currency."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from payments_gateway.sandbox.books.movements import MERCHANT


class Simulation(models.Model):
    """The one row about the simulation itself: its seed, its one-time tokens, and the options now in force."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    seed = models.BigIntegerField()
    seeded_until = models.DateTimeField()
    last_seeded_id = models.BigIntegerField()
    totp_secret = models.CharField(max_length=64)
    last_totp_step = models.BigIntegerField(default=0)
    one_time_code = models.CharField(max_length=6)
    settle_after = models.FloatField(null=True)
    token_required = models.BooleanField(default=True)
    token_reuse = models.BooleanField(default=False)
    fail_next = models.PositiveIntegerField(default=0)

    objects: ClassVar["models.Manager[Simulation]"] = models.Manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_simulation")]

    def __str__(self) -> str:
        return f"simulation of seed {self.seed}"


class Account(models.Model):
    """What one owner holds in one currency. The totals run along with the entries; `transactions` counts them."""

    id = models.BigAutoField(primary_key=True)
    owner = models.CharField(max_length=16)
    currency = models.CharField(max_length=8)
    balance = models.BigIntegerField(default=0)
    received = models.BigIntegerField(default=0)
    sent = models.BigIntegerField(default=0)
    transactions = models.BigIntegerField(default=0)

    objects: ClassVar["models.Manager[Account]"] = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "currency"], name="one_account_per_owner_and_currency"),
            models.CheckConstraint(
                condition=Q(balance=F("received") - F("sent")), name="balance_is_the_difference"
            ),
            models.CheckConstraint(
                condition=~Q(owner=MERCHANT) | Q(balance__gte=0), name="merchant_not_below_zero"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.owner} {self.currency}"


class Status(models.TextChoices):
    """States of a transaction record, spelled as on the wire."""

    PROCESSING = "processing", "processing"
    FULFILLED = "fullfiled", "fullfiled"
    FAILED = "failed", "failed"


class Transaction(models.Model):
    """One transaction record of GET /transaction. Its id is its place in the ledger."""

    id = models.BigAutoField(primary_key=True)
    transaction_id = models.CharField(max_length=32, unique=True)
    currency = models.CharField(max_length=8)
    type = models.CharField(max_length=16)
    status = models.CharField(max_length=16, choices=Status.choices)
    amount = models.BigIntegerField()
    fee = models.BigIntegerField()
    previous_balance = models.BigIntegerField()
    incoming = models.BooleanField()
    sender = models.CharField(max_length=120)
    username = models.CharField(max_length=120)
    from_currency = models.CharField(max_length=8)
    from_amount = models.BigIntegerField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects: ClassVar["models.Manager[Transaction]"] = models.Manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0, fee__gte=0), name="amounts_are_unsigned")
        ]
        indexes = [
            models.Index(fields=["currency", "type"], name="transaction_by_currency"),
            models.Index(fields=["type"], name="transaction_by_type"),
            models.Index(fields=["created_at"], name="transaction_by_time"),
            models.Index(
                fields=["status"], condition=Q(status=Status.PROCESSING), name="transaction_still_processing"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.transaction_id}"


class Entry(models.Model):
    """One line of double entry. The entries of a transaction add up to zero."""

    id = models.BigAutoField(primary_key=True)
    transaction = models.ForeignKey(Transaction, on_delete=models.CASCADE, related_name="entries")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="entries")
    amount = models.BigIntegerField()

    objects: ClassVar["models.Manager[Entry]"] = models.Manager()

    class Meta:
        verbose_name_plural = "entries"

    def __str__(self) -> str:
        return f"{self.amount:+}"


class Withdrawal(models.Model):
    """Where a withdrawal went, and whether it will fail when it settles."""

    transaction = models.OneToOneField(
        Transaction, on_delete=models.CASCADE, primary_key=True, related_name="withdrawal"
    )
    account_number = models.CharField(max_length=10)
    account_name = models.CharField(max_length=120)
    bank = models.CharField(max_length=80)
    bank_code = models.CharField(max_length=6)
    will_fail = models.BooleanField(default=False)

    objects: ClassVar["models.Manager[Withdrawal]"] = models.Manager()

    def __str__(self) -> str:
        return f"to {self.account_number} at {self.bank}"
