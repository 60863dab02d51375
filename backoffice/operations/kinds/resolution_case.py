"""The case that a resolution settles, as it is known here: the attempt in question, and what can be its transaction."""

from typing import Any
from uuid import UUID

from backoffice.core import clock
from backoffice.operations import kinds  # the registry, which imports this file: used only when called
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.states import NEEDS_ATTENTION, Status


def open_case(operation_id: UUID | None) -> tuple[Operation | None, Attempt | None]:
    """The operation whose outcome is open, and the attempt that is in question."""
    attempts = Attempt.objects.select_related("operation").filter(
        operation=operation_id, closed_at__isnull=True
    )
    attempt = attempts.first() if operation_id else None
    if attempt is None or not may_be_settled(attempt.operation, attempt):
        return None, None
    return attempt.operation, attempt


def may_be_settled(operation: Operation, attempt: Attempt) -> bool:
    """Whether people may say what became of this open attempt.

    What the service accepted is the machine's to follow, unless it named no transaction and ours can come no more: then
    it holds its balance, and perhaps no look will ever tell.
    """
    is_nameless = operation.status == Status.PROCESSING and attempt.service_transaction_id is None
    return operation.status in NEEDS_ATTENTION or (is_nameless and clock.now() >= attempt.may_come_until)


def money_kind(operation: Operation) -> tuple[MoneyKind[Any], Any] | None:
    """Kind and content, where the service's list of transactions can show the operation."""
    try:
        kind, payload = kinds.content_of(operation)
    except UnreadableContentError:
        return None
    return (kind, payload) if isinstance(kind, MoneyKind) else None


def unfit(attempt: Attempt, transaction_id: str) -> str:
    """Why this transaction cannot be the attempt's, as far as is known here; empty if it can."""
    if not transaction_id:
        return "Name the transaction: money moved only if the service shows it."
    named = attempt.service_transaction_id
    if attempt.named_at and named != transaction_id:
        return f"The service named transaction {named} as this one."
    other = Attempt.objects.filter(service_transaction_id=transaction_id).exclude(pk=attempt.pk)
    claimed = other.select_related("operation").first()
    return f"This transaction belongs to {claimed.operation.reference}." if claimed else ""
