"""Batch: payments from a file, approved as a whole. The last approval makes each row an operation of its own."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import Any, ClassVar

from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict

from backoffice.core.fields import EXACT
from backoffice.core.web.formatting import format_amount
from backoffice.operations.kinds.base import (
    Debit,
    Facts,
    KindForm,
    KindPage,
    KindSection,
    LocalEffect,
    LocalKind,
    Payload,
    Recipient,
    TypedAmount,
    TypedConfirmation,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.permissions import PREPARE

ROWS_DIGEST = "rows_digest"
"""The member of the payload with the digest over all rows; only batches have it."""


class CurrencyTotal(BaseModel):
    """The rows of one currency: how many, their sum, and the largest amount."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    currency: str
    count: int
    amount: Decimal
    largest: Decimal


def currency_totals(debits: Iterable[Debit]) -> list[CurrencyTotal]:
    """The totals of these rows, by currency."""
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for debit in debits:
        amounts[debit.currency].append(debit.amount)
    with localcontext(EXACT):
        return [
            CurrencyTotal(currency=code, count=len(each), amount=sum(each, Decimal(0)), largest=max(each))
            for code, each in sorted(amounts.items())
        ]


class BatchPayload(Payload):
    """All rows in one digest, in order, and what the approver sees of them at first."""

    file_name: str
    row_kind: str
    count: int
    totals: tuple[CurrencyTotal, ...]
    rows_digest: str
    new_recipients: int
    names_differ: int
    repeated: int
    retry_of: str  # the reference of the batch whose unpaid rows these are; empty for none
    similar_accounts: int = 0  # rows whose payee can be mistaken for a recipient of the register

    ADDED = frozenset({"similar_accounts"})


class BatchForm(KindForm):
    """A batch is prepared from a file, on its own pages."""

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self.add_error(None, gettext("Upload a file to prepare payments. Nothing was prepared."))
        return values


class BatchKind(LocalKind[BatchPayload]):
    """Payments from a file. Each row is sent as an operation of its own, under the batch's approvals."""

    name = "batch"
    label = _("Batch")
    plural = _("Batches")
    page = KindPage("batches", _("New batch"))
    letter = "M"
    verb = _("Payments from a file")
    success_texts = (
        _("Operations created"),
        _("Each row is now an operation of its own."),
    )
    section = KindSection.MONEY
    permission = PREPARE
    effect = LocalEffect.CREATES_OPERATIONS
    applied_at_once: ClassVar[bool] = False
    applied_label = pgettext_lazy("batch", "Ready to send")
    prepared_on = "operations:payout_files"
    content_page = "operations:batch"
    payload_type = BatchPayload
    form_type = BatchForm

    def sentence(self, payload: BatchPayload) -> str:
        counted = ngettext("Make {count} payment: {totals}", "Make {count} payments: {totals}", payload.count)
        return counted.format(count=payload.count, totals=", ".join(map(_total_text, payload.totals)))

    def approval_texts(self, payload: BatchPayload) -> tuple[str, str]:
        counted = ngettext("Approve {count} payment", "Approve {count} payments", payload.count)
        return counted.format(count=payload.count), gettext("Nothing is sent yet.")

    def listed_amount(self, payload: BatchPayload) -> Debit | None:
        """The total of a batch in one currency."""
        totals = payload.totals
        return Debit(totals[0].currency, totals[0].amount) if len(totals) == 1 else None

    def recipient(self, payload: BatchPayload) -> Recipient:
        counted = ngettext("{count} payment", "{count} payments", payload.count)
        return Recipient(counted.format(count=payload.count), payload.file_name)

    def facts(self, payload: BatchPayload) -> Facts:
        facts = [
            *self.decision_facts(payload),
            (gettext("File"), payload.file_name),
            (gettext("Kind"), str(KINDS[payload.row_kind].plural)),
        ]
        return [*facts, (gettext("Retry of"), payload.retry_of)] if payload.retry_of else facts

    def decision_facts(self, payload: BatchPayload) -> Facts:
        totals = [
            (gettext("Total {currency}").format(currency=total.currency), _total_with_largest(total))
            for total in payload.totals
        ]
        return [*totals, (gettext("Rows"), str(payload.count))]

    def initial(self, payload: BatchPayload) -> dict[str, Any]:
        return {}

    def confirmation(self, payload: BatchPayload) -> TypedConfirmation | None:
        """The total, unless the person who sends the rows enters a one-time code."""
        if KINDS[payload.row_kind].asks_for_otp:
            return None
        total = payload.totals[0]
        return TypedAmount(
            gettext("Total {currency}").format(currency=total.currency),
            gettext(
                "Enter the total from your own list of payments, not from this page. Example: 12,780.00."
            ),
            f"{total.amount:f}",
        )

    def cautions(self, payload: BatchPayload) -> list[str]:
        texts = (
            (
                payload.similar_accounts,
                gettext("Rows whose account is similar to that of a recipient in the register: {count}."),
            ),
            (payload.new_recipients, gettext("Rows to recipients not paid before: {count}.")),
            (payload.names_differ, gettext("Rows whose name differs from the name at the bank: {count}.")),
            (payload.repeated, gettext("Rows that repeat a payment of the last 30 days: {count}.")),
        )
        return [text.format(count=count) for count, text in texts if count]


def _total_text(total: CurrencyTotal) -> str:
    return f"{total.currency} {format_amount(total.amount, total.currency)}"


def _total_with_largest(total: CurrencyTotal) -> str:
    counted = ngettext("{amount} in {count} row", "{amount} in {count} rows", total.count)
    largest = gettext("largest {amount}").format(amount=format_amount(total.largest, total.currency))
    return f"{counted.format(amount=_total_text(total), count=total.count)}, {largest}"
