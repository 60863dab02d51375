"""Withdrawal: fiat from the merchant's balance to a bank account (POST /balance/withdraw)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.web.formatting import format_amount, mask_account
from backoffice.operations.kinds.base import (
    NOT_PROVIDED,
    Debit,
    Facts,
    FieldMatch,
    KindPage,
    MoneyKind,
    Recipient,
    SendReceipt,
    common_match_fields,
)
from backoffice.operations.kinds.form_fields import (
    AmountForm,
    RecipientAccountForm,
    RecipientAccountPayload,
    amount_field,
    currency_field,
)
from backoffice.operations.models.reason_codes import MatchField
from backoffice.recipients.keys import bank_account_key
from payments_gateway import PaymentsGateway, TransactionRecord, Withdrawal

CURRENCIES = ("NGN", "USD")
MEMO_MAX = 28


class WithdrawalPayload(RecipientAccountPayload):
    """How much is paid to which account."""

    currency: str
    amount: Decimal
    memo: str


class WithdrawalForm(RecipientAccountForm, AmountForm):
    """Asks for the payment, checks it against the balance, and reads the account's holder from the bank."""

    field_order = (
        *("currency", "amount", "bank_code", "account_number", "typed_name", "name_reason"),
        *("unchecked_confirmed", "unchecked_reason", "unchecked_for", "memo"),
    )

    currency = currency_field(*CURRENCIES)
    amount = amount_field()
    memo = forms.CharField(
        label=_("Memo"),
        required=False,
        max_length=MEMO_MAX,
        help_text=_("Internal: shown to your team and in reports, not sent to the recipient."),
    )

    def content(self) -> WithdrawalPayload:
        values = self.cleaned_data
        return WithdrawalPayload(
            currency=values["currency"], amount=values["amount"], memo=values["memo"], **self.account()
        )


class WithdrawalKind(MoneyKind[WithdrawalPayload]):
    """Fiat to a bank account; needs the provider's one-time code."""

    name = "withdrawal"
    label = _("Withdrawal")
    plural = _("Withdrawals")
    page = KindPage("withdrawals", _("New withdrawal"))
    letter = "W"
    recipient_field = "account_number"
    verb = _("Withdraw")
    file_fields = (
        *("currency", "amount", "bank_code", "account_number", "typed_name", "name_reason", "memo"),
        "duplicate_reason",
    )
    payload_type = WithdrawalPayload
    form_type = WithdrawalForm
    takes_otp = True

    def sentence(self, payload: WithdrawalPayload) -> str:
        values = {
            "currency": payload.currency,
            "amount": format_amount(payload.amount, payload.currency),
            "name": payload.account_name,
            "bank": payload.bank,
            "account": mask_account(payload.account_number),
        }
        if payload.name_not_checked:
            text = gettext("Withdraw {currency} {amount} to {name} (name not checked), {bank} {account}")
        else:
            text = gettext("Withdraw {currency} {amount} to {name}, {bank} {account}")
        return text.format(**values)

    def debit(self, payload: WithdrawalPayload) -> Debit:
        return Debit(payload.currency, payload.amount)

    def recipient(self, payload: WithdrawalPayload) -> Recipient:
        return payload.recipient

    def recipient_key_of(self, fields: Mapping[str, Any]) -> str:
        bank, number = fields.get("bank_code"), fields.get("account_number")
        return bank_account_key(bank, number) if bank and number else ""

    def facts(self, payload: WithdrawalPayload) -> Facts:
        facts = self.decision_facts(payload)
        return [*facts, (gettext("Memo"), payload.memo)] if payload.memo else facts

    def decision_facts(self, payload: WithdrawalPayload) -> Facts:
        return [
            (gettext("Amount"), f"{payload.currency} {format_amount(payload.amount, payload.currency)}"),
            *payload.account_facts,
        ]

    def initial(self, payload: WithdrawalPayload) -> dict[str, Any]:
        return payload.model_dump(
            include={"currency", "amount", "bank_code", "account_number", "typed_name", "name_reason", "memo"}
        )

    def acknowledgement(self, payload: WithdrawalPayload) -> str:
        return payload.acknowledgement

    def cautions(self, payload: WithdrawalPayload) -> list[str]:
        return payload.account_warnings

    def send(
        self, gateway: PaymentsGateway, payload: WithdrawalPayload, otp: SecretStr | None
    ) -> SendReceipt:
        request = Withdrawal(
            account_number=payload.account_number,
            account_name=payload.account_name,
            bank=payload.bank,
            bank_code=payload.bank_code,
            currency=payload.currency,
            amount=payload.amount,
        )
        receipt = gateway.balances.withdraw(request, otp=otp)
        return SendReceipt(receipt.transaction_id, receipt.status, message=receipt.provider_message)

    def match_fields(self, payload: WithdrawalPayload, record: TransactionRecord) -> list[FieldMatch]:
        """Type, currency and amount: the provider's record names no account and no reference of ours."""
        holder = FieldMatch(MatchField.RECIPIENT, payload.account_name, str(NOT_PROVIDED), None)
        return [*common_match_fields("withdrawal", self.debit(payload), record), holder]
