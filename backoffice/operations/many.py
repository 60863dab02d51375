"""Several operations before one decision: which of them it can be taken about here, and what they come to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations import policy
from backoffice.operations.errors import AlreadyApprovedError, OperationError, UnreadableContentError
from backoffice.operations.kinds import Facts, content_of, debits_a_balance, facts_of
from backoffice.operations.models import Operation
from backoffice.operations.panel import has_signed
from backoffice.operations.services import Decision


@dataclass(frozen=True)
class Row:
    """One of them: all that is signed, and why it is left out of the decision (empty if it is not)."""

    operation: Operation
    facts: Facts
    obstacle: str


def rows_for(person: User, operations: Iterable[Operation], decision: Decision) -> list[Row]:
    """A row for each operation. The services check every right again."""
    return [
        Row(operation, _facts(operation), _obstacle(person, operation, decision)) for operation in operations
    ]


def totals(rows: Sequence[Row], *, debited: bool) -> list[tuple[str, Decimal]]:
    """Currency and sum, by currency: of what leaves a balance of ours, or of what does not, such as payments."""
    sums: dict[str, Decimal] = {}
    for operation in (row.operation for row in rows):
        if operation.amount is not None and debits_a_balance(operation.kind) is debited:
            sums[operation.currency] = sums.get(operation.currency, Decimal(0)) + operation.amount
    return sorted(sums.items())


def _facts(operation: Operation) -> Facts:
    try:
        return facts_of(*content_of(operation))
    except UnreadableContentError:
        return []


def _obstacle(person: User, operation: Operation, decision: Decision) -> str:
    try:
        if has_signed(person, operation) and decision is Decision.APPROVE:
            raise AlreadyApprovedError
        policy.check_is_decidable(person, operation, digest=operation.digest, now=timezone.now())
        content_of(operation)
        if decision is Decision.APPROVE:
            policy.check_in_bulk(operation)
    except OperationError as exc:
        return str(exc)
    return ""
