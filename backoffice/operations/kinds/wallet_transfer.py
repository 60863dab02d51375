"""Wallet transfer: crypto from the merchant's wallet to an external address (POST /wallet/transfer).

Also detects addresses that can be mistaken for one paid before (address poisoning): equal at both ends, or
different in a few characters.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.gateway import provider_profile
from backoffice.core.web.formatting import error_sentence, format_amount
from backoffice.ledger import accounts as ledger
from backoffice.operations.kinds.base import (
    NOT_PROVIDED,
    Debit,
    Facts,
    FieldMatch,
    GroupedCode,
    KindPage,
    MoneyKind,
    Payload,
    Recipient,
    SendReceipt,
    TypedConfirmation,
    common_match_fields,
)
from backoffice.operations.kinds.form_fields import (
    AmountForm,
    OneLineField,
    address_field,
    amount_field,
    currency_field,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import MatchField
from backoffice.operations.states import BEFORE_SENDING, NOT_EXECUTED
from backoffice.recipients.keys import address_key, normalised_address
from backoffice.recipients.look_alikes import looks_alike, mark_differences, visible_ends
from payments_gateway import (
    AddressError,
    AddressProof,
    PaymentsGateway,
    TransactionRecord,
    WalletTransfer,
    check_address,
)

CURRENCY = "USDT"
"""The cryptocurrency that every provider has balances in; the provider's list of wallets may name more."""
RETYPED_CHARACTERS = 6  # characters of the address, from its end
MEMO_MAX = 120
MAX_LOOKALIKES_SHOWN = 3
_SEARCHED_TRANSFERS = 200

_PROOF_TEXTS = {
    AddressProof.CHECKSUM: _("Checksum valid: no typing errors found"),
    AddressProof.FORM: _("Format valid, but there is no checksum: typing errors cannot be detected"),
    AddressProof.NOTHING: _("Not checked: unknown network"),
}


class WalletTransferPayload(Payload):
    """Which address receives how much, on which network."""

    network: str
    currency: str
    amount: Decimal
    address: str
    wallet_type: str
    memo: str


class WalletTransferForm(AmountForm):
    """Asks for the address, and checks it as far as its network permits."""

    advanced = ("wallet_type",)

    currency = currency_field(CURRENCY)
    amount = amount_field()
    network = forms.ChoiceField(
        label=_("Network"),
        help_text=_("Must be the recipient's network: on another network the money is lost."),
        widget=forms.Select(attrs={"translate": "no"}),
        error_messages={
            "required": _("Select a network."),
            "invalid_choice": _("Select a network from the list: the provider does not support %(value)s."),
        },
    )
    address = address_field()
    wallet_type = OneLineField(
        label=_("Wallet type"),
        required=False,
        max_length=40,
        help_text=_("Only if the provider requires it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    memo = OneLineField(
        label=_("Memo"),
        required=False,
        max_length=MEMO_MAX,
        help_text=_("Sent to the provider. Exchanges may need it to credit the recipient."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.networks = ledger.transfer_networks(CURRENCY)  # by currency
        super().__init__(*args, **kwargs)
        currency: Any = self.fields["currency"]
        currency.choices = [(code, code) for code in self.networks]
        network: Any = self.fields["network"]
        names = dict.fromkeys(chain.from_iterable(self.networks.values()))
        network.choices = [("", gettext("Select a network")), *((name, name) for name in names)]
        if types := provider_profile().wallet_types:
            self.fields["wallet_type"] = _wallet_type_choice(types)

    @property
    def debit_currencies(self) -> list[str]:
        return list(self.networks)

    def clean(self) -> dict[str, Any]:
        """Refuse a network that the currency does not have, and what cannot be an address of the network."""
        values = super().clean()
        code, name = values.get("currency", ""), values.get("network", "")
        if code and name and name not in self.networks[code]:
            self.add_error(
                "network",
                gettext("The provider sends {currency} only on {networks}. Select one of them.").format(
                    currency=code, networks=", ".join(self.networks[code])
                ),
            )
        if values.get("network") and values.get("address"):
            try:
                check_address(values["network"], values["address"])
            except AddressError as exc:
                self.add_error("address", error_sentence(exc))
        return values

    def content(self) -> WalletTransferPayload:
        values = self.cleaned_data
        return WalletTransferPayload(
            network=values["network"],
            currency=values["currency"],
            amount=values["amount"],
            address=values["address"],
            wallet_type=values["wallet_type"],
            memo=values["memo"],
        )


def _wallet_type_choice(types: Sequence[str]) -> forms.ChoiceField:
    """The field of the wallet type where the profile names those that the provider accepts."""
    return forms.ChoiceField(
        label=_("Wallet type"),
        required=False,
        help_text=_("Only if the provider requires it."),
        choices=[("", _("Not set")), *((name, name) for name in types)],
        widget=forms.Select(attrs={"translate": "no"}),
    )


class WalletTransferKind(MoneyKind[WalletTransferPayload]):
    """Crypto to an address. Needs no one-time code, so the approver types the end of the address."""

    name = "wallet_transfer"
    label = _("Crypto transfer")
    plural = _("Crypto transfers")
    page = KindPage("crypto-transfers", _("New crypto transfer"))
    letter = "X"
    recipient_field = "address"
    verb = _("Send crypto")
    file_fields = ("currency", "amount", "network", "address", "wallet_type", "memo", "duplicate_reason")
    payload_type = WalletTransferPayload
    form_type = WalletTransferForm

    def sentence(self, payload: WalletTransferPayload) -> str:
        amount = format_amount(payload.amount, payload.currency)
        return gettext("Send {currency} {amount} on {network} to {address}").format(
            currency=payload.currency,
            amount=amount,
            network=payload.network,
            address=shortened(payload.address),
        )

    def debit(self, payload: WalletTransferPayload) -> Debit:
        return Debit(payload.currency, payload.amount)

    def recipient(self, payload: WalletTransferPayload) -> Recipient:
        """The address, whatever the network: on all networks like Ethereum it belongs to the same owner."""
        detail = gettext("Address on {network}").format(network=payload.network)
        return Recipient(shortened(payload.address), detail, key=address_key(payload.address))

    def recipient_key_of(self, fields: Mapping[str, Any]) -> str:
        address = fields.get("address")
        return address_key(address) if address else ""

    def facts(self, payload: WalletTransferPayload) -> Facts:
        given = ((gettext("Wallet type"), payload.wallet_type), (gettext("Memo"), payload.memo))
        return [
            *self.decision_facts(payload),
            (gettext("Address check"), _address_check_text(payload)),
            *((label, value) for label, value in given if value),
        ]

    def decision_facts(self, payload: WalletTransferPayload) -> Facts:
        return [
            (gettext("Amount"), f"{payload.currency} {format_amount(payload.amount, payload.currency)}"),
            (gettext("Network"), payload.network),
            (gettext("Recipient address"), GroupedCode(payload.address)),
        ]

    def initial(self, payload: WalletTransferPayload) -> dict[str, Any]:
        return payload.model_dump(exclude={"duplicate_reason"})

    def confirmation(self, payload: WalletTransferPayload) -> TypedConfirmation:
        return TypedConfirmation(
            gettext("Last {n} characters of the address").format(n=RETYPED_CHARACTERS),
            gettext("Take them from the recipient's message, not from this page. Crypto cannot be recalled."),
            payload.address[-RETYPED_CHARACTERS:],
        )

    def cautions(self, payload: WalletTransferPayload) -> list[str]:
        proven = _address_proof(payload)
        unchecked = (
            []
            if proven is AddressProof.CHECKSUM
            else [gettext("Address check: {result}").format(result=_address_check_text(payload))]
        )
        return [*unchecked, *_lookalike_warnings(payload.address)]

    def send(
        self, gateway: PaymentsGateway, payload: WalletTransferPayload, otp: SecretStr | None
    ) -> SendReceipt:
        request = WalletTransfer(
            network=payload.network,
            currency=payload.currency,
            address=payload.address,
            amount=payload.amount,
            wallet_type=payload.wallet_type or None,
            memo=payload.memo,
        )
        detail = gateway.wallets.transfer(request)
        return SendReceipt(detail.transaction_id, detail.status, message=detail.provider_message)

    def match_fields(self, payload: WalletTransferPayload, record: TransactionRecord) -> list[FieldMatch]:
        """Type, currency, amount and, if the record names one, the address."""
        named = [record.username, str((record.model_extra or {}).get("address") or "")]
        own = settings.GATEWAY_API_USER.casefold()
        others = [name for name in named if name.casefold() not in {"", own}]
        fits = (
            all(normalised_address(name) == normalised_address(payload.address) for name in others)
            if others
            else None
        )
        address = FieldMatch(
            MatchField.ADDRESS, payload.address, ", ".join(others) or str(NOT_PROVIDED), fits
        )
        return [*common_match_fields("sent", self.debit(payload), record), address]


def shortened(address: str) -> str:
    """`TQn9Y2…CRc8Fz`, for headlines and lists; the whole address is shown where people decide."""
    return address if len(address) <= 16 else f"{address[:6]}…{address[-6:]}"


def _address_proof(payload: WalletTransferPayload) -> AddressProof | None:
    """How far the address is proven valid; None if the check refuses it now."""
    try:
        return check_address(payload.network, payload.address)
    except AddressError:
        return None


def _address_check_text(payload: WalletTransferPayload) -> str:
    proof = _address_proof(payload)
    return (
        str(_PROOF_TEXTS[proof])
        if proof
        else gettext("Not a valid address on {network}").format(network=payload.network)
    )


def _lookalike_warnings(address: str) -> list[str]:
    """Warnings about addresses paid before, or perhaps paid, that can be mistaken for this one."""
    head, tail = visible_ends(address)
    near = Q(recipient_account__startswith=head) | Q(recipient_account__endswith=tail)
    found = (
        Operation.objects.filter(near, kind=WalletTransferKind.name)
        .exclude(status__in=NOT_EXECUTED | BEFORE_SENDING)
        .order_by("-prepared_at")
        .values_list("payload__address", "reference")
    )
    alike = {paid: reference for paid, reference in found[:_SEARCHED_TRANSFERS] if looks_alike(paid, address)}
    return [
        gettext(
            "Similar to the address paid in {reference}, but not the same. Paid before: {earlier} · Now: "
            "{current} (differences in brackets). This may be address poisoning: confirm the address "
            "with the recipient."
        ).format(
            reference=reference,
            earlier=mark_differences(paid, address),
            current=mark_differences(address, paid),
        )
        for paid, reference in list(alike.items())[:MAX_LOOKALIKES_SHOWN]
    ]
