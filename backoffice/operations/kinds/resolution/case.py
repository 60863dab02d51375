"""What a resolution decides and two people approve: the operation, the choice, the evidence.

It closes an open attempt, or an approved operation that was paid without a request from here.
"""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from django.utils.translation import gettext
from pydantic import BaseModel, ConfigDict, model_validator

from backoffice.core import clock
from backoffice.core.web.formatting import quoted
from backoffice.ledger import provider_list
from backoffice.ledger.mirror.rows import direction
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import MoneyKind, Payload
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.monitoring import LostAttempt
from backoffice.operations.models.operations import Attempt, Operation, Release, content_key
from backoffice.operations.states import NEEDS_ATTENTION, Status
from payments_gateway import TransactionRecord

NAME = "resolution"  # of the kind
PROCESSING = "processing"  # the status of a transaction that is still being executed


class ResolutionChoice(StrEnum):
    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"


class ResolvedOutcome(StrEnum):
    """The outcome of the operation that is resolved."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


# Outcomes by the status of a transaction.
KNOWN_OUTCOMES = {
    "fulfilled": ResolvedOutcome.SUCCEEDED,
    "failed": ResolvedOutcome.FAILED,
}


class TransactionEvidence(BaseModel):
    """The provider's record when the resolution was proposed. `mismatched` names the fields that differ."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    transaction_id: str
    type: str
    status: str
    currency: str
    amount: Decimal
    fee: Decimal | None
    counterparty: str
    previous_balance: Decimal | None
    created_at: datetime | None
    mismatched: tuple[str, ...]

    @property
    def quoted_status(self) -> str:
        """The provider's status, as sentences quote it."""
        return quoted(self.status) if self.status else gettext("(none)")


class ClaimedTransaction(BaseModel):
    """The transaction that the attempt had claimed, and how it was listed then (None: not at all)."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    transaction_id: str
    shown: TransactionEvidence | None


class ResolutionPayload(Payload):
    """The operation and its attempt, the choice, the evidence and the reason.

    Without an attempt, the operation is approved and the transaction paid it without a request from here.
    `claimed` is set for "not executed" if the attempt has a transaction: the evidence that it was not executed.
    `meaning` is the outcome that people give an unknown status of the provider; it is set exactly if it is
    needed.
    """

    operation: UUID
    reference: str
    sentence: str
    attempt: int | None
    sent_at: datetime | None
    choice: ResolutionChoice
    transaction: TransactionEvidence | None
    claimed: ClaimedTransaction | None = None
    meaning: ResolvedOutcome | None = None
    reason: str

    @model_validator(mode="after")
    def _has_one_outcome(self) -> Self:
        """Raises ValueError unless exactly one of the provider's status and `meaning` gives the outcome."""
        is_known_outcome = self.transaction is None or self.transaction.status in KNOWN_OUTCOMES
        if is_known_outcome == (self.meaning is not None):
            raise ValueError("a meaning must be given exactly if the provider's status is not known")
        return self

    @model_validator(mode="after")
    def _paid_if_not_sent(self) -> Self:
        """Raises ValueError if there is no attempt and no transaction that succeeded."""
        if self.attempt is None and (self.transaction is None or self.outcome != ResolvedOutcome.SUCCEEDED):
            raise ValueError("without an attempt, a transaction must have paid the operation")
        return self

    @property
    def outcome(self) -> ResolvedOutcome:
        """The outcome, by the provider's status or by the meaning that people give it."""
        if self.choice == ResolutionChoice.NOT_EXECUTED:
            return ResolvedOutcome.FAILED
        if self.transaction is None:
            return ResolvedOutcome.SUCCEEDED
        return self.meaning or KNOWN_OUTCOMES[self.transaction.status]

    def identity(self) -> dict[str, Any]:
        """Only one resolution of an operation may be pending, whatever it chooses."""
        return _identity(self.operation)


def _identity(operation_id: UUID) -> dict[str, Any]:
    return {"operation": str(operation_id)}


def open_attempt(operation_id: UUID | None) -> tuple[Operation | None, Attempt | None]:
    """The operation with an unknown outcome and its open attempt; None for both if it may not be resolved."""
    attempts = Attempt.objects.select_related("operation").filter(
        operation=operation_id, closed_at__isnull=True
    )
    attempt = attempts.first() if operation_id else None
    if attempt is None or not may_be_resolved(attempt.operation, attempt):
        return None, None
    return attempt.operation, attempt


def may_be_resolved(operation: Operation, attempt: Attempt) -> bool:
    """Whether people may resolve this open attempt.

    A `processing` operation is followed automatically, unless the provider named no transaction and ours can
    no longer be executed: then it blocks its balance, and no check may ever close it.
    """
    has_no_transaction = operation.status == Status.PROCESSING and attempt.provider_transaction_id is None
    return operation.status in NEEDS_ATTENTION or (
        has_no_transaction and clock.now() >= attempt.execution_deadline
    )


def may_be_paid_elsewhere(operation: Operation) -> bool:
    """Whether people may name the transaction that paid this operation without a request from here.

    It is approved, it is not released, and nothing of it may be under way.
    """
    return (
        operation.status == Status.APPROVED
        and money_kind(operation) is not None
        and not Release.objects.filter(operation=operation).exists()
        and not operation.attempts.filter(closed_at__isnull=True).exists()
        and not LostAttempt.objects.keeps_open(operation)
    )


def not_sent(operation_id: UUID | None) -> Operation | None:
    """The operation, if `may_be_paid_elsewhere`."""
    operation = Operation.objects.filter(pk=operation_id).first() if operation_id else None
    return operation if operation is not None and may_be_paid_elsewhere(operation) else None


def pending_resolution(operation: Operation) -> Operation | None:
    """The resolution of this operation that waits for approval."""
    key = content_key(NAME, _identity(operation.pk))
    return Operation.objects.filter(content_key=key, status=Status.PENDING).first()


def read_payment(operation: Operation, transaction_id: str) -> TransactionRecord | None:
    """The transaction as the provider lists it now; None if it is older than the operation.

    One without a time counts only if the check before sending found it. Raises GatewayError.
    """
    found = operation.look_alikes.filter(transaction_id=transaction_id).first()
    found_time = found.as_record().created_at if found else None
    since = min(operation.prepared_at, found_time or operation.prepared_at) - Attempt.CLOCK_SKEW
    listed = provider_list.transactions_since(operation.currency, since).records
    record = next((one for one in listed if one.transaction_id == transaction_id), None)
    return record if record is not None and (record.created_at or found) else None


def payment_problem(operation: Operation, record: TransactionRecord | None) -> str:
    """Why this transaction cannot have paid the operation; empty if it can."""
    kind_and_payload = money_kind(operation)
    if record is None or kind_and_payload is None:
        return gettext(
            "The provider's list shows no transaction with this ID since this operation was prepared. "
            "Nothing was prepared. Check the ID."
        )
    kind, payload = kind_and_payload
    if direction(record) == "in" or not kind.is_match(payload, record):
        differs = [one.label for one in kind.match_fields(payload, record) if one.matches is False]
        return gettext(
            "This transaction is not the payment of this operation. Fields that differ: {fields}"
        ).format(fields=", ".join(differs) or gettext("Direction"))
    if record.status == PROCESSING:
        return gettext("The provider still shows it as processing. Wait until it has completed or failed.")
    if record.status == "failed":
        return gettext("The provider shows this transaction as failed, so it paid nothing.")
    return ""


def money_kind(operation: Operation) -> tuple[MoneyKind[Any], Any] | None:
    """Kind and content, if the provider's list of transactions can show the operation."""
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return None
    return (kind, payload) if isinstance(kind, MoneyKind) else None


def claim_problem(operation: Operation, attempt: Attempt | None, transaction_id: str) -> str:
    """Why this transaction cannot be the attempt's, as far as is known here; empty if it can.

    Without an attempt, no other operation may have claimed it: those of this one are proven not executed.
    """
    if not transaction_id:
        return gettext("Enter the transaction ID: the provider must show that money moved.")
    received = attempt.provider_transaction_id if attempt else None
    if attempt and attempt.id_received_at and received != transaction_id:
        return gettext("The provider reported transaction {id} for this operation. Enter that ID.").format(
            id=received
        )
    other = Attempt.objects.filter(provider_transaction_id=transaction_id)
    other = other.exclude(pk=attempt.pk) if attempt else other.exclude(operation=operation)
    claimed = other.select_related("operation").first()
    if claimed is None:
        return ""
    return gettext("This transaction belongs to {reference}.").format(reference=claimed.operation.reference)
