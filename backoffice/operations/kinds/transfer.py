"""Transfer: fiat from the merchant's balance to another user of the provider (POST /balance/transfer)."""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from pydantic import SecretStr

from backoffice.core.gateway import provider_profile
from backoffice.core.web.formatting import format_amount
from backoffice.operations.kinds.base import (
    Debit,
    Facts,
    FieldMatch,
    MoneyKind,
    Payload,
    Recipient,
    SendReceipt,
    common_match_fields,
    optional_match_field,
)
from backoffice.operations.kinds.form_fields import AmountForm, amount_field, currency_field
from backoffice.operations.models.reason_codes import MatchField
from payments_gateway import PaymentsGateway, TransactionRecord, Transfer

CURRENCIES = ("NGN", "USD")
MEMO_MAX = 28


class TransferPayload(Payload):
    """Who receives how much. The memo is sent to the provider."""

    receiver_username: str
    currency: str
    amount: Decimal
    memo: str


class TransferForm(AmountForm):
    """Asks for the user and the amount. Only the provider knows whether the user exists."""

    receiver_username = forms.CharField(
        label="Receiver's username",
        help_text="As the service knows it. Nobody can look it up beforehand: compare it with the receiver's own word.",
        max_length=64,
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9._@+-]+\Z", "A username has letters, digits and . _ - @ + only, no spaces."
            )
        ],
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    currency = currency_field(*CURRENCIES)
    amount = amount_field()
    memo = forms.CharField(
        label="Memo",
        required=False,
        max_length=MEMO_MAX,
        help_text=f"The receiver reads it. At most {MEMO_MAX} characters.",
        widget=forms.TextInput(attrs={"data-count": MEMO_MAX}),
    )

    def content(self) -> TransferPayload:
        values = self.cleaned_data
        return TransferPayload(
            receiver_username=values["receiver_username"],
            currency=values["currency"],
            amount=values["amount"],
            memo=values["memo"],
        )


class TransferKind(MoneyKind[TransferPayload]):
    """Fiat to another user of the provider; needs the one-time code."""

    name = "transfer"
    label = "Transfer"
    plural = "Transfers"
    letter = "T"
    verb = "Transfer"
    payload_type = TransferPayload
    form_type = TransferForm

    @property
    def needs_otp(self) -> bool:
        return provider_profile().otp_required

    def sentence(self, payload: TransferPayload) -> str:
        amount = format_amount(payload.amount, payload.currency)
        return f"Transfer {payload.currency} {amount} to user {payload.receiver_username}"

    def debit(self, payload: TransferPayload) -> Debit:
        return Debit(payload.currency, payload.amount)

    def recipient(self, payload: TransferPayload) -> Recipient:
        name = payload.receiver_username
        return Recipient(name, "User of the service", key=Recipient.user_key(name))

    def facts(self, payload: TransferPayload) -> Facts:
        facts = [
            ("Amount", f"{payload.currency} {format_amount(payload.amount, payload.currency)}"),
            ("To", f"{payload.receiver_username}, user of the service"),
        ]
        return [*facts, ("Memo", payload.memo)] if payload.memo else facts

    def initial(self, payload: TransferPayload) -> dict[str, Any]:
        return payload.model_dump(include={"receiver_username", "currency", "amount", "memo"})

    def send(self, gateway: PaymentsGateway, payload: TransferPayload, otp: SecretStr | None) -> SendReceipt:
        request = Transfer(
            receiver_username=payload.receiver_username,
            currency=payload.currency,
            amount=payload.amount,
            memo=payload.memo,
        )
        detail = gateway.balances.transfer(request, otp=otp)
        return SendReceipt(detail.transaction_id, detail.status)

    def match_fields(self, payload: TransferPayload, record: TransactionRecord) -> list[FieldMatch]:
        """Type, currency, amount and, if the record names one, the receiver."""
        receiver = optional_match_field(MatchField.RECEIVER, payload.receiver_username, record.username)
        return [*common_match_fields("transfer", self.debit(payload), record), receiver]
