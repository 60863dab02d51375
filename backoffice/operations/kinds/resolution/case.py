"""What a resolution decides and what the two people sign: the attempt, the verdict, the provider's record of it."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, model_validator

from backoffice.core import clock
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.base import MoneyKind, Payload
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import NEEDS_ATTENTION, Status


class ResolutionChoice(StrEnum):
    """What the proposer says."""

    HAPPENED = "happened"
    ABSENT = "did_not_happen"


class ResolvedEnd(StrEnum):
    """How what happened ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


KNOWN_ENDS = {
    "fulfilled": ResolvedEnd.SUCCEEDED,
    "failed": ResolvedEnd.FAILED,
}  # by the status of a transaction


class TransactionEvidence(BaseModel):
    """The service's record as it stood when the resolution was proposed. `differs` names what does not fit."""

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
    differs: tuple[str, ...]

    @property
    def word(self) -> str:
        """The service's word for how it stands, as sentences quote it."""
        return f"“{self.status}”" if self.status else "having no status"


class ClaimedTransaction(BaseModel):
    """The transaction that was taken for the attempt, and how the service showed it then; None: not at all."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    transaction_id: str
    shown: TransactionEvidence | None


class ResolutionPayload(Payload):
    """The operation and its attempt, what became of it, the evidence and the reason.

    `named` is the evidence of what did not happen although the attempt had a transaction: that it is not executed.
    `meaning` is what people say of a status that is not known here; there is one exactly where it is needed.
    """

    operation: UUID
    reference: str
    sentence: str
    attempt: int
    sent_at: datetime
    verdict: ResolutionChoice
    transaction: TransactionEvidence | None
    named: ClaimedTransaction | None = None
    meaning: ResolvedEnd | None = None
    reason: str

    @model_validator(mode="after")
    def _says_how_it_ended(self) -> Self:
        """Raises ValueError where the end of what happened is not told, or told twice."""
        is_told = self.transaction is None or self.transaction.status in KNOWN_ENDS
        if is_told == (self.meaning is not None):
            raise ValueError("the end is told by the service's word, or else by people")
        return self

    @property
    def end(self) -> ResolvedEnd:
        """How what happened ended, by the service's word or by what people say of it."""
        if self.verdict == ResolutionChoice.ABSENT:
            return ResolvedEnd.FAILED
        if self.transaction is None:
            return ResolvedEnd.SUCCEEDED
        return self.meaning or KNOWN_ENDS[self.transaction.status]

    def compared(self) -> dict[str, Any]:
        """One proposal about one operation waits at a time, whatever it says."""
        return {"operation": str(self.operation)}


def open_attempt(operation_id: UUID | None) -> tuple[Operation | None, Attempt | None]:
    """The operation whose outcome is open, and the attempt that is in question."""
    attempts = Attempt.objects.select_related("operation").filter(
        operation=operation_id, closed_at__isnull=True
    )
    attempt = attempts.first() if operation_id else None
    if attempt is None or not may_be_resolved(attempt.operation, attempt):
        return None, None
    return attempt.operation, attempt


def may_be_resolved(operation: Operation, attempt: Attempt) -> bool:
    """Whether people may say what became of this open attempt.

    What the service accepted is the machine's to follow, unless it named no transaction and ours can come no more: then
    it holds its balance, and perhaps no look will ever tell.
    """
    is_nameless = operation.status == Status.PROCESSING and attempt.service_transaction_id is None
    return operation.status in NEEDS_ATTENTION or (is_nameless and clock.now() >= attempt.may_come_until)


def money_kind(operation: Operation) -> tuple[MoneyKind[Any], Any] | None:
    """Kind and content, where the service's list of transactions can show the operation."""
    try:
        kind, payload = read_content(operation)
    except UnreadableContentError:
        return None
    return (kind, payload) if isinstance(kind, MoneyKind) else None


def claim_problem(attempt: Attempt, transaction_id: str) -> str:
    """Why this transaction cannot be the attempt's, as far as is known here; empty if it can."""
    if not transaction_id:
        return "Name the transaction: money moved only if the service shows it."
    named = attempt.service_transaction_id
    if attempt.named_at and named != transaction_id:
        return f"The service named transaction {named} as this one."
    other = Attempt.objects.filter(service_transaction_id=transaction_id).exclude(pk=attempt.pk)
    claimed = other.select_related("operation").first()
    return f"This transaction belongs to {claimed.operation.reference}." if claimed else ""
