"""What keeps an approved payment from being sent until a person has compared the records and given a reason.

That is a transaction at the provider that looks like the payment, or another name of the account's holder.
"""

from datetime import datetime

from django.db import models
from django.db.models import Q

from backoffice.accounts.models import User
from backoffice.audit.canonical import canonical_time
from backoffice.core.database.writes import appended
from backoffice.core.encryption import SealedRow, SealState
from backoffice.operations.models.operations import Operation
from payments_gateway import TransactionRecord


class Hold(SealedRow):
    """What stops a payment until a person states, with a reason, that it may be sent.

    The statement is sealed, since the next release depends on it.
    """

    operation: models.ForeignKey[Operation]

    class Meta:
        abstract = True

    @property
    def owner(self) -> str:
        return self.operation.reference

    @property
    def stated_at(self) -> datetime | None:
        """When a person stated it; None while nobody has."""
        raise NotImplementedError

    @property
    def is_altered(self) -> bool:
        """Whether it has a statement that nobody made with Countersign."""
        return self.stated_at is not None and self.seal_state() != SealState.VALID


class LookAlike(Hold):
    """A transaction at the provider that looks like an operation not sent yet and belongs to no attempt here.

    The operation may have been paid already: sent from a copy of this database, or outside Countersign. It is
    not sent until a person declares, with a reason, that this is another payment.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="look_alikes")
    transaction_id = models.TextField()
    record = models.JSONField()  # as the provider reported it, for comparison on the page
    found_at = models.DateTimeField()
    declared_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    declared_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)  # why it is another payment

    WRITES = appended("declared_by", "declared_at", "reason", "seal")

    class Meta:
        default_permissions = ()
        ordering = ("found_at", "pk")
        constraints = [
            models.UniqueConstraint(fields=["operation", "transaction_id"], name="look_alike_once"),
            models.CheckConstraint(
                condition=Q(declared_at__isnull=True, declared_by__isnull=True, reason="")
                | (Q(declared_at__isnull=False, declared_by__isnull=False) & ~Q(reason="")),
                name="look_alike_declared_with_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.transaction_id} is similar to {self.operation_id}"

    def sealed_content(self) -> dict[str, object]:
        """That this person declared this transaction another payment than this operation, and why."""
        return {
            "statement": "another_payment",
            "operation": str(self.operation_id),
            "transaction": self.transaction_id,
            "by": self.declared_by_id,
            "at": canonical_time(self.declared_at) if self.declared_at else None,
            "reason": self.reason,
        }

    @property
    def stated_at(self) -> datetime | None:
        return self.declared_at

    def as_record(self) -> TransactionRecord:
        """The record as the client read it."""
        return TransactionRecord.model_validate(self.record)


class HolderChange(Hold):
    """Another name of a bank account's holder than the one that was approved, as the bank gave it before sending.

    Empty if the bank no longer finds the account. The operation is not sent until a person has seen both names and
    confirmed, with a reason, that the account is right.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="holder_changes")
    approved_name = models.CharField(max_length=200)
    name = models.CharField(max_length=200, blank=True)
    found_at = models.DateTimeField()
    confirmed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)

    WRITES = appended("confirmed_by", "confirmed_at", "reason", "seal")

    class Meta:
        default_permissions = ()
        ordering = ("found_at", "pk")
        constraints = [
            models.UniqueConstraint(fields=["operation", "name"], name="holder_change_once"),
            models.CheckConstraint(
                condition=Q(confirmed_at__isnull=True, confirmed_by__isnull=True, reason="")
                | (Q(confirmed_at__isnull=False, confirmed_by__isnull=False) & ~Q(reason="")),
                name="holder_change_confirmed_with_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} instead of {self.approved_name}"

    def sealed_content(self) -> dict[str, object]:
        """That this person confirmed the account of this operation although the bank gives this name, and why."""
        return {
            "statement": "confirmed_holder",
            "operation": str(self.operation_id),
            "names": [self.approved_name, self.name],
            "by": self.confirmed_by_id,
            "at": canonical_time(self.confirmed_at) if self.confirmed_at else None,
            "reason": self.reason,
        }

    @property
    def stated_at(self) -> datetime | None:
        return self.confirmed_at
