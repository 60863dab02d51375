"""The tables of the sandbox: its books (amounts in minor units of the currency), the merchant, and webhooks."""

import enum
from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from payments_gateway.sandbox import MERCHANT


class SandboxState(models.Model):
    """The sandbox's state, a single row: seed, one-time codes, current options, and the offset of its clock."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    seed = models.BigIntegerField()
    seeded_until = models.DateTimeField()
    last_seeded_id = models.BigIntegerField()
    totp_secret = models.CharField(max_length=64)
    last_totp_step = models.BigIntegerField(default=0)
    one_time_code = models.CharField(max_length=6)
    settle_after = models.FloatField(null=True)
    otp_required = models.BooleanField(default=True)
    token_reuse = models.BooleanField(default=False)
    fail_next = models.PositiveIntegerField(default=0)
    clock_ahead = models.DurationField(default=timedelta)
    customer_pays_after = models.FloatField(null=True)

    objects: ClassVar["models.Manager[SandboxState]"] = models.Manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_state_row")]

    def __str__(self) -> str:
        return f"sandbox of seed {self.seed}"


class Account(models.Model):
    """The balance of one owner in one currency.

    The totals are updated together with the entries; `transactions` counts them.
    """

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
    """States of a transaction record, spelled as in the API."""

    PROCESSING = "processing", "processing"
    FULFILLED = "fullfiled", "fullfiled"
    FAILED = "failed", "failed"


class Transaction(models.Model):
    """One transaction record of GET /transaction. The primary key is its position in the ledger."""

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
            models.Index(fields=["currency", "type", "amount"], name="transaction_amounts"),
            models.Index(fields=["type"], name="transaction_by_type"),
            models.Index(fields=["created_at"], name="transaction_by_time"),
            models.Index(
                fields=["status"], condition=Q(status=Status.PROCESSING), name="transaction_still_processing"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.transaction_id}"


class Payment(models.Model):
    """One off-ramp payment. `due_at` is when its state next changes by time alone; null for a final one.

    `rate` is a decimal stored as text, because SQLite would store a number as a float.
    """

    class State(models.TextChoices):
        """States of a payment, described in `books/payments.py`."""

        PENDING = "pending", "pending"
        UNCONFIRMED = "unconfirmed", "unconfirmed"
        PROCESSING = "processing", "processing"
        COMPLETED = "completed", "completed"
        FAILED = "failed", "failed"
        UNDERPAID = "underpaid", "underpaid"
        EXPIRED = "expired", "expired"

    id = models.BigAutoField(primary_key=True)
    payment_id = models.CharField(max_length=32, unique=True)
    reference = models.CharField(max_length=120, unique=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    incoming_currency = models.CharField(max_length=8)
    incoming_amount = models.BigIntegerField()
    outgoing_currency = models.CharField(max_length=8)
    outgoing_amount = models.BigIntegerField()
    confirmed_amount = models.BigIntegerField(default=0)
    unconfirmed_amount = models.BigIntegerField(default=0)
    rate = models.CharField(max_length=40)
    address = models.CharField(max_length=80)
    customer_email = models.CharField(max_length=254)
    payment_type = models.CharField(max_length=16)
    service_username = models.CharField(max_length=120)
    country = models.CharField(max_length=120)
    account_number = models.CharField(max_length=10)
    account_name = models.CharField(max_length=120)
    bank = models.CharField(max_length=120)
    bank_code = models.CharField(max_length=6)
    will_fail = models.BooleanField(default=False)
    expires_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects: ClassVar["models.Manager[Payment]"] = models.Manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(incoming_amount__gt=0, outgoing_amount__gt=0), name="payment_of_something"
            )
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="payment_still_open")
        ]

    def __str__(self) -> str:
        return f"payment {self.reference}"

    @property
    def destination(self) -> str:
        """The account number or username that receives the payout."""
        return self.account_number or self.service_username


class Arrival(models.Model):
    """Crypto sent by a customer to the address of a payment."""

    id = models.BigAutoField(primary_key=True)
    payment = models.ForeignKey(Payment, on_delete=models.CASCADE, related_name="arrivals")
    amount = models.BigIntegerField()
    arrived_at = models.DateTimeField()

    objects: ClassVar["models.Manager[Arrival]"] = models.Manager()

    def __str__(self) -> str:
        return f"{self.amount} for {self.payment}"


class Entry(models.Model):
    """One line of double-entry bookkeeping.

    The entries of a transaction add up to zero, those of a payment in each currency.
    """

    id = models.BigAutoField(primary_key=True)
    transaction = models.ForeignKey(Transaction, on_delete=models.CASCADE, related_name="entries", null=True)
    payment = models.ForeignKey(Payment, on_delete=models.CASCADE, related_name="entries", null=True)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="entries")
    amount = models.BigIntegerField()

    objects: ClassVar["models.Manager[Entry]"] = models.Manager()

    class Meta:
        verbose_name_plural = "entries"
        constraints = [
            models.CheckConstraint(
                condition=Q(transaction__isnull=False, payment__isnull=True)
                | Q(transaction__isnull=True, payment__isnull=False),
                name="entry_of_a_transaction_or_a_payment",
            )
        ]

    def __str__(self) -> str:
        return f"{self.amount:+}"


class Ordered(models.Model):
    """The destination of an order, and whether the order will fail at settlement."""

    will_fail = models.BooleanField(default=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"to {self.destination}"

    @property
    def destination(self) -> str:
        """The text that decides the outcome: account number, username or address."""
        raise NotImplementedError


class Withdrawal(Ordered):
    """The bank account of a withdrawal."""

    transaction = models.OneToOneField(
        Transaction, on_delete=models.CASCADE, primary_key=True, related_name="withdrawal"
    )
    account_number = models.CharField(max_length=10)
    account_name = models.CharField(max_length=120)
    bank = models.CharField(max_length=80)
    bank_code = models.CharField(max_length=6)

    objects: ClassVar["models.Manager[Withdrawal]"] = models.Manager()

    @property
    def destination(self) -> str:
        return self.account_number


class Transfer(Ordered):
    """The receiving user of a transfer."""

    transaction = models.OneToOneField(
        Transaction, on_delete=models.CASCADE, primary_key=True, related_name="transfer"
    )
    receiver = models.CharField(max_length=120)
    memo = models.CharField(max_length=28)

    objects: ClassVar["models.Manager[Transfer]"] = models.Manager()

    @property
    def destination(self) -> str:
        return self.receiver


class WalletTransfer(Ordered):
    """The address and network of a crypto transfer."""

    transaction = models.OneToOneField(
        Transaction, on_delete=models.CASCADE, primary_key=True, related_name="wallet_transfer"
    )
    network = models.CharField(max_length=16)
    address = models.CharField(max_length=128)
    wallet_type = models.CharField(max_length=120)
    memo = models.CharField(max_length=120)

    objects: ClassVar["models.Manager[WalletTransfer]"] = models.Manager()

    @property
    def destination(self) -> str:
        return self.address


class Scope(enum.StrEnum):
    """Scopes of an API key, as in the API. `merchant.keys.allows` defines what each permits."""

    MASTER = "M"
    GET_ONLY = "G"
    WITHDRAWAL = "W"
    NO_WITHDRAWAL = "N"


class MerchantDetails(models.Model):
    """The simulated merchant, a single row: its KYC status and its callback URL."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    kyc = models.BooleanField(default=True)
    callback_url = models.CharField(max_length=2048, blank=True, default="")

    objects: ClassVar["models.Manager[MerchantDetails]"] = models.Manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_merchant_row")]

    def __str__(self) -> str:
        return "verified merchant" if self.kyc else "merchant without KYC"


class ApiKey(models.Model):
    """One API key. The key is not stored: `digest` is its SHA-256, `short_hash` the first eight digits.

    A plain digest is sufficient, because keys are random and too long to be guessed. `expires_at` is in Unix
    seconds, as in the API, so that the check before every request needs no conversion.
    """

    id = models.BigAutoField(primary_key=True)
    digest = models.CharField(max_length=64, unique=True)
    short_hash = models.CharField(max_length=8, unique=True)
    name = models.CharField(max_length=120)
    scope = models.CharField(max_length=1)
    expires_at = models.BigIntegerField(null=True)
    invalidated_at = models.DateTimeField(null=True)

    objects: ClassVar["models.Manager[ApiKey]"] = models.Manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=[*map(str, Scope)]), name="scope_is_known")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.short_hash})"


class BankAccount(models.Model):
    """A bank account that the provider opened for the merchant (PUT /v4/account).

    `name` is the accountName of the request, `printed_name` the name that the bank shows to payers.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=120)
    printed_name = models.CharField(max_length=120)
    currency = models.CharField(max_length=8)
    account_number = models.CharField(max_length=10, unique=True)
    bank_code = models.CharField(max_length=6)
    status = models.CharField(max_length=16, default="ACTIVE")

    objects: ClassVar["models.Manager[BankAccount]"] = models.Manager()

    def __str__(self) -> str:
        return f"{self.account_number} of {self.printed_name}"


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
    STRANGER = "stranger", "signed by an unknown key"
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
