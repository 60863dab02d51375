"""What a resolution signs: the operation and its attempt, what became of it, and the service's own record of that."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, model_validator

from backoffice.operations.kinds.base import Payload


class ResolutionChoice(StrEnum):
    """What the proposer says."""

    HAPPENED = "happened"
    ABSENT = "did_not_happen"


class End(StrEnum):
    """How what happened ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


KNOWN_ENDS = {"fulfilled": End.SUCCEEDED, "failed": End.FAILED}  # by the status of a transaction


class SeenTransaction(BaseModel):
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


class TakenTransaction(BaseModel):
    """The transaction that was taken for the attempt, and how the service showed it then; None: not at all."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    transaction_id: str
    shown: SeenTransaction | None


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
    transaction: SeenTransaction | None
    named: TakenTransaction | None = None
    meaning: End | None = None
    reason: str

    @model_validator(mode="after")
    def _says_how_it_ended(self) -> Self:
        """Raises ValueError where the end of what happened is not told, or told twice."""
        is_told = self.transaction is None or self.transaction.status in KNOWN_ENDS
        if is_told == (self.meaning is not None):
            raise ValueError("the end is told by the service's word, or else by people")
        return self

    @property
    def end(self) -> End:
        """How what happened ended, by the service's word or by what people say of it."""
        if self.verdict == ResolutionChoice.ABSENT:
            return End.FAILED
        if self.transaction is None:
            return End.SUCCEEDED
        return self.meaning or KNOWN_ENDS[self.transaction.status]

    def compared(self) -> dict[str, Any]:
        """One proposal about one operation waits at a time, whatever it says."""
        return {"operation": str(self.operation)}
