"""What is asked for a payment: what comes in, what is paid out for it, and to whom."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.core.validators import RegexValidator

from backoffice.core.gateway import dialect
from backoffice.ledger import rates
from backoffice.ledger.business import business_id
from backoffice.operations.kinds.amounts import currency_field
from backoffice.operations.kinds.holder import AccountForm, AccountPayload
from payments_gateway import AmountError, GatewayError, parse_amount

INCOMING, OUTGOING = ("USDT",), ("NGN", "USD")
BANK, PROFILE = "bank", "profile"
_PAYOUTS = {BANK: "A bank account", PROFILE: "A user of the service"}
_ACCOUNT = ("country", "bank_code", "account_number", "typed_name")
_NEEDED = {BANK: _ACCOUNT, PROFILE: ("service_username",)}
_FIELDS_OF = {BANK: (*_ACCOUNT, "name_reason"), PROFILE: ("service_username",)}


class PaymentPayload(AccountPayload):
    """What comes in, what is paid out for it, and to whom; the members of the other way of paying out are empty."""

    SEEN = frozenset({"reference", "business_id"})

    business_id: str
    reference: str
    incoming_currency: str
    incoming_amount: Decimal | None
    outgoing_currency: str
    outgoing_amount: Decimal | None
    customer_email: str
    rate_key: str
    payment_type: str
    service_username: str
    country: str


class PaymentForm(AccountForm):
    """Asks who pays what in, and who is paid."""

    incoming_currency = currency_field(*INCOMING, label="Customer pays in")
    incoming_amount = forms.CharField(
        label="Amount to pay in",
        required=False,
        max_length=40,
        help_text="One of the two amounts is enough; the service's rate makes the other.",
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    outgoing_currency = currency_field(*OUTGOING, label="Paid out in")
    outgoing_amount = forms.CharField(
        label="Amount to pay out",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    customer_email = forms.EmailField(
        label="Customer's e-mail",
        max_length=254,
        help_text="Of whoever pays the crypto in.",
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    payment_type = forms.ChoiceField(
        label="Paid out to",
        choices=list(_PAYOUTS.items()),
        initial=BANK,
        widget=forms.RadioSelect,
    )
    service_username = forms.CharField(
        label="Username",
        max_length=60,
        help_text="As the service knows it. Nobody can look it up beforehand.",
        validators=[RegexValidator(r"^\S+\Z", "A username has no spaces.")],
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    country = forms.CharField(label="Country of the bank", max_length=60, initial="NG")
    rate_key = forms.CharField(
        label="Rate key",
        required=False,
        max_length=80,
        help_text="Fixes a rate that the service told. It ages: if it is too old when this is sent, the service "
        "refuses the payment.",
        validators=[RegexValidator(r"^[\x21-\x7e]+\Z", "A key has no spaces and no special characters.")],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    business_id = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        payouts: Any = self.fields["payment_type"]
        payouts.choices = [
            (value, label) for value, label in _PAYOUTS.items() if value in dialect().payment_types
        ]
        for names in _NEEDED.values():
            for name in names:
                self.fields[name].required = False  # which of them are needed, the type of the payout says

    @property
    def rate(self) -> rates.KeyedRate | None:
        """The service's rate for the chosen currencies with its key, where it tells them."""
        chosen = self["incoming_currency"].value(), self["outgoing_currency"].value()
        return rates.keyed_rate(str(chosen[0] or INCOMING[0]), str(chosen[1] or OUTGOING[0]))

    def clean(self) -> dict[str, Any]:
        """Ask for what the type of the payout needs, and forget what belongs to the other one."""
        values = super().clean()
        self._check_payout(values)
        for side in ("incoming", "outgoing"):
            self._check_amount(values, f"{side}_amount", values.get(f"{side}_currency", ""))
        if not any(
            values.get(name) or self.errors.get(name) for name in ("incoming_amount", "outgoing_amount")
        ):
            self.add_error("incoming_amount", "Enter one of the two amounts.")
        if not _submission(self):
            self.add_error(None, "This form has lost its number. Nothing was prepared; open it anew.")
        if not self.errors:
            self._check_business()
        return values

    def content(self) -> PaymentPayload:
        values = self.cleaned_data
        to_bank = values["payment_type"] == BANK
        account = self.account() if to_bank else dict.fromkeys(AccountPayload.model_fields, "")
        return PaymentPayload(
            business_id=self.business_id,
            reference=_reference(_submission(self)),
            incoming_currency=values["incoming_currency"],
            incoming_amount=values["incoming_amount"] or None,
            outgoing_currency=values["outgoing_currency"],
            outgoing_amount=values["outgoing_amount"] or None,
            customer_email=values["customer_email"],
            rate_key=values["rate_key"],
            payment_type=values["payment_type"],
            service_username="" if to_bank else values["service_username"],
            country=values["country"] if to_bank else "",
            **account,
        )

    def _check_holder(self, values: dict[str, Any]) -> None:
        if values.get("payment_type") == BANK:
            super()._check_holder(values)

    def _check_payout(self, values: dict[str, Any]) -> None:
        chosen = values.get("payment_type")
        for payout, names in _FIELDS_OF.items():
            for name in names if chosen and payout != chosen else ():
                self.errors.pop(name, None)
                values[name] = ""
        for name in _NEEDED.get(str(chosen), ()):
            if not values.get(name) and name not in self.errors:
                self.add_error(name, "This field is required.")

    def _check_amount(self, values: dict[str, Any], name: str, currency: str) -> None:
        if not values.get(name) or not currency:
            return
        try:
            values[name] = parse_amount(values[name], currency)
        except AmountError as exc:
            self.add_error(name, str(exc))

    def _check_business(self) -> None:
        try:
            self.business_id = business_id()
        except GatewayError:
            self.add_error(
                None,
                "The service does not answer, so your business's id there is not known. Nothing was prepared; "
                "try again.",
            )
            return
        if not self.business_id:
            self.add_error(
                None,
                "Your business's id at the service is not known: the newest transactions name none, or several. "
                "Nothing was prepared. "
                "Whoever runs Countersign has to set COUNTERSIGN_GATEWAY_BUSINESS_ID.",
            )


def _submission(form: forms.Form) -> UUID | None:
    """The number that the page gave this form: the operation's id, if it is prepared."""
    try:
        return UUID(str(form.data.get("submission", "")))
    except ValueError:
        return None


def _reference(submission: UUID | None) -> str:
    """Ours, which no other payment has: the same for the same form, however often it is sent."""
    return f"CS-{submission.hex[:20].upper()}" if submission else ""
