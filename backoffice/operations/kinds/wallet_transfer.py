"""Wallet transfer: crypto from the merchant's wallet to an address outside (POST /wallet/transfer)."""

from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from pydantic import SecretStr

from backoffice.core.display import format_amount
from backoffice.operations.differences import MatchField
from backoffice.operations.kinds.amounts import AmountForm, amount_field, currency_field
from backoffice.operations.kinds.base import (
    Code,
    Confirmation,
    Counterparty,
    Debit,
    Facts,
    MoneyKind,
    Payload,
    Receipt,
    Trait,
)
from backoffice.operations.kinds.lookalike import ends_of, looks_alike, marked, same_form
from backoffice.operations.kinds.traits import NOT_TOLD, usual_traits
from backoffice.operations.models import Operation
from backoffice.operations.states import CAME_TO_NOTHING, UNDECIDED
from payments_gateway import (
    AddressError,
    AddressProof,
    PaymentsGateway,
    TransactionRecord,
    WalletTransfer,
    check_address,
)

CURRENCIES = ("USDT",)
NETWORKS = ("TRC20", "ERC20", "BEP20", "POLYGON")  # suggestions: the specification names none
TYPED_AGAIN = 6  # characters of the address, from its end
MEMO_MAX = 120
SHOWN_ALIKE = 3
_LOOKED_AT = 200

_ONE_LINE = RegexValidator(r"^[^\x00-\x1f\x7f]*\Z", "Characters that cannot be seen are not allowed here.")


class WalletTransferPayload(Payload):
    """Which address receives how much, on which network."""

    network: str
    currency: str
    amount: Decimal
    address: str
    wallet_type: str
    memo: str


class WalletTransferForm(AmountForm):
    """Asks for the address, and checks what its network lets be checked."""

    currency = currency_field(*CURRENCIES)
    amount = amount_field()
    network = forms.CharField(
        label="Network",
        max_length=16,
        help_text="As the service names it. On another network than the receiver's, the money is lost.",
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9 _-]+\Z", "The name of a network has letters, digits and hyphens only."
            )
        ],
        widget=forms.TextInput(attrs={"list": "networks", "autocomplete": "off", "spellcheck": "false"}),
    )
    address = forms.CharField(
        label="Address",
        max_length=128,
        help_text="Copy it from the receiver's own word, not from an earlier transaction.",
        validators=[
            RegexValidator(r"^[\x21-\x7e]+\Z", "An address has no spaces and no special characters.")
        ],
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    wallet_type = forms.CharField(
        label="Wallet type",
        required=False,
        max_length=40,
        help_text="Only if the service asks for it.",
        validators=[_ONE_LINE],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    memo = forms.CharField(
        label="Memo",
        required=False,
        max_length=MEMO_MAX,
        help_text="Some receivers, such as exchanges, book by it. It goes to the service as it is.",
        validators=[_ONE_LINE],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Refuse what can be no address of the network."""
        values = super().clean()
        if values.get("network") and values.get("address"):
            try:
                check_address(values["network"], values["address"])
            except AddressError as exc:
                self.add_error("address", str(exc))
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

    @property
    def networks(self) -> tuple[str, ...]:
        """What to suggest."""
        return NETWORKS


class WalletTransferKind(MoneyKind[WalletTransferPayload]):
    """Crypto to an address. The service asks for no token, so whoever countersigns types the end of the address."""

    name = "wallet_transfer"
    label = "Wallet transfer"
    plural = "Wallet transfers"
    letter = "X"
    verb = "Send crypto"
    payload_type = WalletTransferPayload
    form_type = WalletTransferForm

    def sentence(self, payload: WalletTransferPayload) -> str:
        amount = format_amount(payload.amount, payload.currency)
        return f"Send {payload.currency} {amount} on {payload.network} to {shortened(payload.address)}"

    def debit(self, payload: WalletTransferPayload) -> Debit:
        return Debit(payload.currency, payload.amount)

    def counterparty(self, payload: WalletTransferPayload) -> Counterparty:
        """The address, whatever the network: whoever holds it on one of Ethereum's kind holds it on all of them."""
        detail = f"Address on {payload.network}"
        return Counterparty(shortened(payload.address), detail, key=f"address:{same_form(payload.address)}")

    def facts(self, payload: WalletTransferPayload) -> Facts:
        given = (("Wallet type", payload.wallet_type), ("Memo", payload.memo))
        return [
            ("Amount", f"{payload.currency} {format_amount(payload.amount, payload.currency)}"),
            ("Network", payload.network),
            ("To address", Code(payload.address)),
            ("Address check", _checked(payload)),
            *((label, value) for label, value in given if value),
        ]

    def initial(self, payload: WalletTransferPayload) -> dict[str, Any]:
        return payload.model_dump(exclude={"repeat_reason"})

    def confirmation(self, payload: WalletTransferPayload) -> Confirmation:
        return Confirmation(
            f"Last {TYPED_AGAIN} characters of the address",
            "Read them off the receiver's own word, not off this page: what is sent cannot be called back.",
            payload.address[-TYPED_AGAIN:],
        )

    def cautions(self, payload: WalletTransferPayload) -> list[str]:
        proven = _proof(payload)
        unchecked = [] if proven is AddressProof.CHECKSUM else [f"Address: {_checked(payload)}."]
        return [*unchecked, *_first_time(payload.address), *_alike(payload.address)]

    def send(
        self, gateway: PaymentsGateway, payload: WalletTransferPayload, token: SecretStr | None
    ) -> Receipt:
        request = WalletTransfer(
            network=payload.network,
            currency=payload.currency,
            address=payload.address,
            amount=payload.amount,
            wallet_type=payload.wallet_type or None,
            memo=payload.memo,
        )
        detail = gateway.wallets.transfer(request)
        return Receipt(detail.transaction_id, detail.status)

    def traits(self, payload: WalletTransferPayload, record: TransactionRecord) -> list[Trait]:
        """Type, currency, amount and, where the record names one, the address."""
        named = [record.username, str((record.model_extra or {}).get("address") or "")]
        others = [name for name in named if name not in {"", settings.GATEWAY_API_USER}]
        fits = all(same_form(name) == same_form(payload.address) for name in others) if others else None
        address = Trait(MatchField.ADDRESS, payload.address, ", ".join(others) or NOT_TOLD, fits)
        return [*usual_traits("sent", self.debit(payload), record), address]


def shortened(address: str) -> str:
    """`TQn9Y2…CRc8Fz`: for headlines and lists; where people decide, all of it is shown."""
    return address if len(address) <= 16 else f"{address[:6]}…{address[-6:]}"


def _proof(payload: WalletTransferPayload) -> AddressProof | None:
    """How much is proven; None if the check refuses the address by now."""
    try:
        return check_address(payload.network, payload.address)
    except AddressError:
        return None


def _checked(payload: WalletTransferPayload) -> str:
    proof = _proof(payload)
    return proof.value if proof else f"this can be no address on {payload.network}"


def _paid() -> QuerySet[Operation]:
    """Wallet transfers that reached the service, or may have."""
    return Operation.objects.filter(kind=WalletTransferKind.name).exclude(
        status__in=CAME_TO_NOTHING | UNDECIDED
    )


def _first_time(address: str) -> list[str]:
    if _paid().filter(beneficiary_key=f"address:{same_form(address)}").exists():
        return []
    return ["First time: nothing was ever sent to this address from here. Have the receiver confirm it."]


def _alike(address: str) -> list[str]:
    """What to say of addresses paid already that pass for this one."""
    head, tail = ends_of(address)
    near = Q(beneficiary_account__startswith=head) | Q(beneficiary_account__endswith=tail)
    found = _paid().filter(near).order_by("-prepared_at").values_list("payload__address", "reference")
    alike = {paid: reference for paid, reference in found[:_LOOKED_AT] if looks_alike(paid, address)}
    return [
        f"Looks like an address that was paid with {reference}, but is another one. Paid then: "
        f"{marked(paid, address)} · Now: {marked(address, paid)} (what differs is in brackets). Somebody may have "
        "put it in your way to be mistaken for the other."
        for paid, reference in list(alike.items())[:SHOWN_ALIKE]
    ]
