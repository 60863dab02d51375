"""The summary in the decision panel of an operation: its content, its debit and fee, and who must approve it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext

from backoffice.core.fields import EXACT
from backoffice.core.web.formatting import local_day, local_time
from backoffice.operations.kinds.base import Debit, Facts, LocalKind
from backoffice.operations.kinds.registry import AnyKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.operation.waiting import Waiting
from backoffice.operations.selectors import first_payment_text
from backoffice.operations.states import BEFORE_SENDING


@dataclass(frozen=True)
class DecisionSummary:
    """What the panel shows of an operation that is not sent yet: its content, its debit, who must approve it.

    `debit` is None if no balance is debited, and `balance` if none was ever reported. `last_fee` is what the provider
    charged the last time for this kind, currency and network, at `last_fee_at`; both None before the first. `waiting`
    is what it waits for. `first_payment` is a warning, and `name_check` says when the bank was last asked
    for the name of the holder; both may be empty. `approval_texts` are those of a kind that is applied here.
    """

    facts: Facts
    debit: Debit | None
    moves_money: bool
    balance: Decimal | None
    balance_as_of: datetime | None
    last_fee: Decimal | None
    last_fee_at: datetime | None
    given: Sequence[str]
    needed: int
    waiting: Waiting | None
    first_payment: str
    name_check: str
    approval_texts: tuple[str, str] | None

    @property
    def missing(self) -> int:
        """How many approvals are still needed."""
        return max(self.needed - len(self.given), 0)

    @property
    def last_fee_day(self) -> str:
        return local_day(self.last_fee_at) if self.last_fee_at else ""

    @property
    def balance_after(self) -> Decimal | None:
        """The last reported balance without the amount, before the fee; None if either is not known."""
        if self.debit is None or self.balance is None:
            return None
        return EXACT.subtract(self.balance, self.debit.amount)


def decision_summary(
    operation: Operation, kind: AnyKind | None, payload: Any, waiting: Waiting | None
) -> DecisionSummary | None:
    """The summary of an operation that is not sent yet, otherwise None. `kind` is None if the content cannot be read.

    The operation comes from `selectors.operation_page`.
    """
    if operation.status not in BEFORE_SENDING:
        return None
    debit = kind.debit(payload) if kind else None
    return DecisionSummary(
        facts=kind.decision_facts(payload) if kind else [],
        debit=debit,
        moves_money=kind is not None and kind.exposure(payload) is not None,
        balance=getattr(operation, "balance_amount", None),
        balance_as_of=getattr(operation, "balance_as_of", None),
        last_fee=getattr(operation, "last_fee", None),
        last_fee_at=getattr(operation, "last_fee_at", None),
        given=[approval.approved_by for approval in operation.approvals.all()],
        needed=operation.approvals_needed,
        waiting=waiting,
        first_payment=first_payment_text(operation) if kind else "",
        name_check=_name_check_text(operation, payload),
        approval_texts=kind.approval_texts(payload) if isinstance(kind, LocalKind) else None,
    )


def _name_check_text(operation: Operation, payload: Any) -> str:
    """When the bank was last asked for a name that it did not confirm; empty if the name was checked."""
    if not getattr(payload, "name_not_checked", ""):
        return ""
    return gettext(
        "The bank was last asked for the name when this was prepared, {time}, and did not confirm it. It is not "
        "asked again."
    ).format(time=local_time(operation.prepared_at))
