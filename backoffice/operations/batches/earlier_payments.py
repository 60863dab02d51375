"""What was paid, or is about to be paid, to the recipients of many rows: read together, judged row by row."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext

from backoffice.core import clock
from backoffice.operations.errors import DuplicateUnknownError
from backoffice.operations.models.batches import IS_WAITING_ROW, BatchRow, RowFlag
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.selectors import IS_EXECUTED, IS_OPEN
from backoffice.operations.states import NOT_EXECUTED, OUTCOME_UNKNOWN
from backoffice.operations.workflow.prepare import DUPLICATE_WINDOW

REPEATED_PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class RowPayment:
    """What a row pays to whom, and its reason for paying the same again; empty for none."""

    recipient_key: str
    currency: str
    amount: Decimal
    reason: str


@dataclass(frozen=True)
class EarlierPayments:
    """The payments to some recipients: by recipient, currency and amount."""

    unknown: dict[tuple[str, str, Decimal], Operation] = field(default_factory=dict)
    waiting: dict[tuple[str, str, Decimal], str] = field(default_factory=dict)  # the reference
    # The same ones, also by the reason why the same is paid again.
    by_reason: dict[tuple[tuple[str, str, Decimal], str], str] = field(default_factory=dict)
    repeated: set[tuple[str, str, Decimal]] = field(default_factory=set)
    paid: set[str] = field(default_factory=set)  # recipients of whom a payment succeeded

    def problem(self, row: RowPayment) -> str:
        """Why this row must not be paid now; empty if it may."""
        key = (row.recipient_key, row.currency, row.amount)
        if key in self.unknown:
            other = self.unknown[key]
            return str(DuplicateUnknownError(other.reference, other.pk))
        if key in self.waiting and not row.reason:
            return gettext(
                "{reference} pays the same amount to this recipient. Remove the row, or enter the reason for the "
                "additional payment."
            ).format(reference=self.waiting[key])
        if (key, row.reason) in self.by_reason:
            return gettext(
                "{reference} pays the same amount to this recipient for the same reason. Remove the row, or enter a "
                "different reason for each additional payment."
            ).format(reference=self.by_reason[key, row.reason])
        return ""

    def flags(self, row: RowPayment) -> list[RowFlag]:
        """Why the approver should check this row first."""
        found = []
        if row.recipient_key not in self.paid:
            found.append(RowFlag.NEW_RECIPIENT)
        if row.reason or (row.recipient_key, row.currency, row.amount) in self.repeated:
            found.append(RowFlag.REPEATED)
        return found


def earlier_payments(recipients: Collection[str]) -> EarlierPayments:
    """The open and recent payments to these recipients, in four queries."""
    found, now = EarlierPayments(), clock.now()
    to_them = Operation.objects.filter(recipient_key__in=recipients)
    lately = Attempt.objects.filter(operation=OuterRef("pk"), started_at__gt=now - DUPLICATE_WINDOW)
    recent = to_them.filter(IS_OPEN | Q(prepared_at__gt=now - REPEATED_PERIOD)).exclude(
        status__in=NOT_EXECUTED
    )
    for operation in recent.annotate(was_sent_lately=Exists(lately)).order_by("prepared_at"):
        key = (operation.recipient_key or "", operation.currency, operation.amount or Decimal(0))
        found.repeated.add(key)
        if operation.status in OUTCOME_UNKNOWN:
            found.unknown[key] = operation
        if not operation.is_closed or operation.was_sent_lately:
            found.waiting[key] = operation.reference
            found.by_reason[key, _reason(operation.payload)] = operation.reference
    for key, reason, reference in _in_batches(recipients):
        found.waiting[key] = reference
        found.by_reason[key, reason] = reference
    paid = to_them.filter(IS_EXECUTED).values_list("recipient_key", flat=True).distinct()
    found.paid.update(key for key in paid if key)
    return found


def _reason(payload: dict[str, Any]) -> str:
    return str(payload.get("duplicate_reason", ""))


def _in_batches(recipients: Collection[str]) -> Iterator[tuple[tuple[str, str, Decimal], str, str]]:
    """The rows of open batches that are no operations yet, each with its reason and the reference of its batch."""
    rows = BatchRow.objects.filter(
        IS_WAITING_ROW, recipient_key__in=recipients, batch__closed_at__isnull=True
    )
    for key, currency, amount, payload, reference in rows.values_list(
        "recipient_key", "currency", "amount", "payload", "batch__reference"
    ):
        yield (key, currency, amount), _reason(payload), reference


def repeated_in_file(payments: dict[int, RowPayment]) -> dict[int, str]:
    """The rows, by number, that pay what an earlier row of the file pays without a reason of their own."""
    groups: dict[tuple[str, str, Decimal], list[int]] = defaultdict(list)
    for number, row in payments.items():
        groups[row.recipient_key, row.currency, row.amount].append(number)
    problems = {}
    for first, *others in groups.values():
        reasons = {payments[first].reason}
        for number in others:
            reason = payments[number].reason
            if not reason or reason in reasons:
                problems[number] = gettext(
                    "Row {row} pays the same amount to this recipient. Remove one, or enter a different reason for "
                    "each additional payment."
                ).format(row=first)
            reasons.add(reason)
    return problems
