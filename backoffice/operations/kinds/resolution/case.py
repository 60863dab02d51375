"""What a resolution decides and two people approve: the attempt, the choice, the evidence."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from django.utils.translation import gettext
from pydantic import BaseModel, ConfigDict, model_validator

from backoffice.core import clock
from backoffice.core.web.formatting import quoted
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import MoneyKind, Payload
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import NEEDS_ATTENTION, Status


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

    `claimed` is set for "not executed" if the attempt has a transaction: the evidence that it was not executed.
    `meaning` is the outcome that people give an unknown status of the provider; it is set exactly if it is
    needed.
    """

    operation: UUID
    reference: str
    sentence: str
    attempt: int
    sent_at: datetime
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
        return {"operation": str(self.operation)}


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


def money_kind(operation: Operation) -> tuple[MoneyKind[Any], Any] | None:
    """Kind and content, if the provider's list of transactions can show the operation."""
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return None
    return (kind, payload) if isinstance(kind, MoneyKind) else None


def claim_problem(attempt: Attempt, transaction_id: str) -> str:
    """Why this transaction cannot be the attempt's, as far as is known here; empty if it can."""
    if not transaction_id:
        return gettext("Enter the transaction ID: the provider must show that money moved.")
    received = attempt.provider_transaction_id
    if attempt.id_received_at and received != transaction_id:
        return gettext("The provider reported transaction {id} for this operation. Enter that ID.").format(
            id=received
        )
    other = Attempt.objects.filter(provider_transaction_id=transaction_id).exclude(pk=attempt.pk)
    claimed = other.select_related("operation").first()
    if claimed is None:
        return ""
    return gettext("This transaction belongs to {reference}.").format(reference=claimed.operation.reference)
