"""Rows of our database as the oracle reads them, without the ORM."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

LOCAL_KINDS = {"resolution", "resume", "batch", "otp_secret"}

OPERATIONS_QUERY = (
    "SELECT id, kind, status, amount, payload, preparer_id, reference FROM operations_operation"
)
ATTEMPTS_QUERY = """
    SELECT id, operation_id, balance, closed_at IS NULL, provider_transaction_id, watermark_provider_time, started_at,
        resolution_id, check_result, COALESCE(responses ->> '$[0].code' LIKE 'accepted%', 0), watermark_balance,
        begun_at IS NOT NULL
    FROM operations_attempt ORDER BY id
"""
ENTRIES_QUERY = """
    SELECT target_id, action FROM audit_entry
    WHERE target_type = 'operations.operation' AND action LIKE 'operation.%' ORDER BY position
"""
SIGNED_QUERY = """
    SELECT COUNT(DISTINCT approver_id) FROM operations_approval
    JOIN operations_operation ON operations_operation.id = operation_id
    JOIN accounts_user ON accounts_user.id = approver_id AND accounts_user.is_active
    JOIN accounts_user_groups ON accounts_user_groups.user_id = approver_id
    JOIN auth_group ON auth_group.id = group_id AND auth_group.name = ?
    WHERE operation_id = ? AND approver_id <> operations_operation.preparer_id
        AND operations_approval.digest = operations_operation.digest
"""


ROWS_OF_BATCHES_QUERY = """
    SELECT batch_id, number, operation_id FROM operations_batchrow WHERE operation_id IS NOT NULL
    ORDER BY batch_id, number
"""
STOPPED_BATCH_QUERY = """
    SELECT 1 FROM operations_batch
    JOIN operations_batchrow ON operations_batchrow.batch_id = operations_batch.operation_id
    WHERE operations_batchrow.operation_id = ? AND (paused_at IS NOT NULL OR cancelled_at IS NOT NULL)
"""
# The earliest times of work: checks, expiries of operations and of releases, and deadlines and latest beginnings of
# requests under way; then whether a bulk release or a delivery waits. One query, since it is asked in every round.
DUE_QUERY = """
    WITH open_attempt AS (
        SELECT status, next_check_at, deadline_at, begin_by, begun_at FROM operations_attempt
        JOIN operations_operation ON operations_operation.id = operation_id
        WHERE operations_attempt.closed_at IS NULL
    )
    SELECT
        (SELECT MIN(next_check_at) FROM open_attempt WHERE status IN ('processing', 'unknown')),
        (SELECT MIN(expires_at) FROM operations_operation WHERE status IN ('pending', 'approved')),
        (SELECT MIN(expires_at) FROM operations_release),
        (SELECT MIN(deadline_at) FROM open_attempt WHERE status = 'sending'),
        (SELECT MIN(begin_by) FROM open_attempt WHERE status = 'sending' AND begun_at IS NULL),
        EXISTS (SELECT 1 FROM operations_bulkrelease WHERE is_pending),
        EXISTS (SELECT 1 FROM webhooks_delivery WHERE check_due_at IS NOT NULL)
"""


class OperationRow:
    """An operation."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        key, self.kind, self.status, amount, payload, self.preparer, self.reference = row
        self.pk = UUID(key)
        self.amount = Decimal(amount) if amount is not None else None
        self.payload: dict[str, Any] = json.loads(payload)

    def __str__(self) -> str:
        return f"{self.reference} ({self.status})"

    @property
    def is_local(self) -> bool:
        return self.kind in LOCAL_KINDS

    @property
    def content(self) -> tuple[str, str, Decimal, str]:
        """In the provider's terms: type, currency, amount, destination."""
        payload = self.payload
        type_, currency, destination = {
            "withdrawal": ("withdrawal", "currency", "account_number"),
            "transfer": ("transfer", "currency", "receiver_username"),
            "conversion": ("conversion", "from_currency", "to_currency"),
            "wallet_transfer": ("sent", "currency", "address"),
        }[self.kind]
        return type_, payload[currency], Decimal(payload["amount"]), payload[destination]


@dataclass
class AttemptRow:
    """An attempt."""

    pk: int
    operation: UUID
    balance: str | None
    is_open: bool
    names: str | None
    mark: datetime | None
    started_at: datetime
    resolved_by: str | None
    check_result: str
    is_accepted: bool
    balance_before: Decimal | None
    has_begun: bool

    @property
    def is_unmatched(self) -> bool:
        return self.is_open and self.names is None and self.balance is not None


def attempt_of(row: tuple[Any, ...]) -> AttemptRow:
    pk, operation, balance, is_open, names, mark, started, resolved, check_result, accepted, before, begun = (
        row
    )
    return AttemptRow(
        pk,
        UUID(operation),
        balance,
        bool(is_open),
        names,
        moment(mark) if mark else None,
        moment(started),
        resolved,
        check_result,
        bool(accepted),
        Decimal(before) if before is not None else None,
        bool(begun),
    )


def moment(text: str | datetime) -> datetime:
    """A time as stored by SQLite."""
    found = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=connection.timezone)
