"""Transfer: fiat from the merchant's balance to another user of the provider (POST /balance/transfer)."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.web.formatting import format_amount
from backoffice.operations.kinds.base import (
    Debit,
    Facts,
    FieldMatch,
    KindPage,
    MoneyKind,
    Payload,
    Recipient,
    SendReceipt,
    common_match_fields,
    optional_match_field,
)
from backoffice.operations.kinds.form_fields import (
    UNCHECKED_USERNAME,
    AmountForm,
    OneLineField,
    amount_field,
    currency_field,
    username_field,
)
from backoffice.operations.models.reason_codes import MatchField
from backoffice.recipients.keys import user_key
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

    receiver_username = username_field(_("Recipient's username"), UNCHECKED_USERNAME)
    currency = currency_field(*CURRENCIES)
    amount = amount_field()
    memo = OneLineField(
        label=_("Memo"),
        required=False,
        max_length=MEMO_MAX,
        help_text=_("Shown to the recipient."),
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
    label = _("Transfer")
    plural = _("Transfers")
    page = KindPage("transfers", _("New transfer"))
    letter = "T"
    recipient_field = "receiver_username"
    verb = pgettext_lazy("verb", "Transfer")
    file_fields = ("currency", "amount", "receiver_username", "memo", "duplicate_reason")
    payload_type = TransferPayload
    form_type = TransferForm
    takes_otp = True

    def sentence(self, payload: TransferPayload) -> str:
        amount = format_amount(payload.amount, payload.currency)
        return gettext("Transfer {currency} {amount} to user {username}").format(
            currency=payload.currency, amount=amount, username=payload.receiver_username
        )

    def debit(self, payload: TransferPayload) -> Debit:
        return Debit(payload.currency, payload.amount)

    def recipient(self, payload: TransferPayload) -> Recipient:
        name = payload.receiver_username
        return Recipient(name, gettext("User of the provider"), key=user_key(name))

    def recipient_key_of(self, fields: Mapping[str, Any]) -> str:
        name = fields.get("receiver_username")
        return user_key(name) if name else ""

    def facts(self, payload: TransferPayload) -> Facts:
        facts = self.decision_facts(payload)
        return [*facts, (gettext("Memo"), payload.memo)] if payload.memo else facts

    def decision_facts(self, payload: TransferPayload) -> Facts:
        return [
            (gettext("Amount"), f"{payload.currency} {format_amount(payload.amount, payload.currency)}"),
            (
                gettext("Recipient"),
                gettext("{username}, user of the provider").format(username=payload.receiver_username),
            ),
        ]

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
        return SendReceipt(detail.transaction_id, detail.status, message=detail.provider_message)

    def match_fields(self, payload: TransferPayload, record: TransactionRecord) -> list[FieldMatch]:
        """Type, currency, amount and, if the record names one, the receiver, in whatever case."""
        receiver = optional_match_field(MatchField.RECEIVER, payload.receiver_username, record.username)
        if user_key(record.username.strip()) == user_key(payload.receiver_username):
            receiver = replace(receiver, matches=True)
        return [*common_match_fields("transfer", self.debit(payload), record), receiver]

    def is_similar_only(self, payload: TransferPayload, record: TransactionRecord) -> bool:
        """Whether the named receiver differs in case. The specification does not say if this can be another user."""
        return record.username.strip() not in {"", payload.receiver_username}
