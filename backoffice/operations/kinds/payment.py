"""Payment: a customer pays crypto in, the provider pays out to a bank account or a user (POST /payment)."""

import hashlib
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.validators import RegexValidator
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, SecretStr, TypeAdapter

from backoffice.core.cached_reads import CachedRead, failed_read_text
from backoffice.core.gateway import FORM_HINT_TIMEOUT, gateway, provider_profile
from backoffice.core.web.formatting import country_name, format_amount, sort_key
from backoffice.ledger import accounts as ledger
from backoffice.ledger import rates
from backoffice.operations.errors import ReferenceUsedError
from backoffice.operations.kinds.base import (
    ChangeKind,
    Debit,
    Facts,
    KindPage,
    KindSection,
    Recipient,
    SendReceipt,
)
from backoffice.operations.kinds.form_fields import (
    UNCHECKED_USERNAME,
    RecipientAccountForm,
    RecipientAccountPayload,
    amount_field,
    currency_field,
    minimum_text,
    parse_typed_amount,
    username_field,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import Difference, DifferenceCode, MatchField, difference
from backoffice.operations.permissions import PREPARE
from backoffice.recipients.keys import user_key
from payments_gateway import GatewayError, Payment, PaymentRequest, PaymentsGateway, comparable_reference

INCOMING, OUTGOING = ("USDT",), ("NGN", "USD")
BANK, PROFILE = "bank", "profile"
_PAYOUTS = {BANK: _("Bank account"), PROFILE: _("User of the provider")}
_ACCOUNT = ("country", "bank_code", "account_number", "typed_name")
_NEEDED = {BANK: _ACCOUNT, PROFILE: ("service_username",)}
_UNCHECKED = ("unchecked_confirmed", "unchecked_reason", "unchecked_for")
_FIELDS_OF = {BANK: (*_ACCOUNT, "name_reason", *_UNCHECKED), PROFILE: ("service_username",)}
_RECORDS_READ = 20
_BUSINESS_ID: CachedRead[str | None] = CachedRead(
    "business-id", TypeAdapter(str | None), keep_for=timedelta(hours=1), fresh_for=timedelta(hours=1)
)


class PaymentPayload(RecipientAccountPayload):
    """What is paid in, what is paid out and to whom; members of the other payout type are empty."""

    # The reference too, even if it was typed: under another one, the same payment is still a duplicate.
    OBSERVED = RecipientAccountPayload.OBSERVED | {"reference", "business_id"}

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


class PaymentForm(RecipientAccountForm):
    """Asks what the customer pays in, and who is paid."""

    advanced = ("rate_key",)
    field_order = (
        *("incoming_currency", "incoming_amount", "outgoing_currency", "outgoing_amount", "customer_email"),
        *("reference", "payment_type", *_ACCOUNT, "service_username", "name_reason", *_UNCHECKED, "rate_key"),
    )

    incoming_currency = currency_field(*INCOMING, label=_("Pay-in currency"))
    incoming_amount = amount_field(
        _("Pay-in amount"),
        required=False,
        help_text=_("Enter one amount. The other is calculated at the provider's rate."),
    )
    outgoing_currency = currency_field(*OUTGOING, label=_("Payout currency"))
    outgoing_amount = amount_field(_("Payout amount"), required=False)
    customer_email = forms.EmailField(
        label=_("Customer's email address"),
        max_length=254,
        help_text=_("The customer who sends the crypto."),
        validators=[
            # a quoted local part may hide characters, or contain what the client refuses when the payment is sent
            RegexValidator(
                r"^[!#-\[\]-~]+\Z",
                _(
                    "Use ASCII characters without spaces, quotation marks or backslashes. Write international names "
                    "as xn--."
                ),
                code="not_plain",  # the field has a message of its own for Django's code
            )
        ],
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    reference = forms.CharField(
        label=_("Reference"),
        required=False,
        max_length=60,
        help_text=_("Your order or invoice number, sent to the provider. If it is empty, one is generated."),
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9][A-Za-z0-9 ._/#-]*\Z",
                _(
                    "Begin with a letter or digit. Use letters without accents, digits, spaces and . _ / # - only."
                ),
            )
        ],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    payment_type = forms.ChoiceField(
        label=_("Payout to"),
        choices=list(_PAYOUTS.items()),
        initial=BANK,
        widget=forms.RadioSelect,
    )
    service_username = username_field(_("Username"), UNCHECKED_USERNAME)
    country = forms.ChoiceField(
        label=_("Bank country"),
        error_messages={
            "invalid_choice": _("Select a country from the list: the provider does not support %(value)s.")
        },
    )
    rate_key = forms.CharField(
        label=_("Rate key"),
        required=False,
        max_length=80,
        help_text=_(
            "Fixes a rate quoted by the provider. If the key has expired, the provider refuses the payment."
        ),
        validators=[RegexValidator(r"^[\x21-\x7e]+\Z", _("Remove spaces and special characters."))],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    business_id = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        payouts: Any = self.fields["payment_type"]
        payouts.choices = [
            (value, label) for value, label in _PAYOUTS.items() if value in provider_profile().payment_types
        ]
        self._offer_countries()
        self._show_minimums()
        for names in _NEEDED.values():
            for name in names:
                # which of them are required depends on the type of the payout
                self.fields[name].required = False

    def _offer_countries(self) -> None:
        """The countries of the provider by name; the first one configured is chosen at first."""
        countries = provider_profile().payment_countries
        field: Any = self.fields["country"]
        field.choices = sorted(
            ((country, country_name(country)) for country in countries),
            key=lambda choice: sort_key(choice[1]),
        )
        field.initial = countries[0]

    def _show_minimums(self) -> None:
        minimums = ledger.cached_minimum_amounts()
        for name, currencies in (("incoming_amount", INCOMING), ("outgoing_amount", OUTGOING)):
            field = self.fields[name]
            texts = (str(field.help_text), minimum_text(minimums, currencies))
            field.help_text = " ".join(text for text in texts if text)

    @property
    def rate(self) -> rates.KeyedRate | None:
        """The provider's rate for the chosen currencies with its key, if it reports one."""
        chosen = self["incoming_currency"].value(), self["outgoing_currency"].value()
        return rates.keyed_rate(str(chosen[0] or INCOMING[0]), str(chosen[1] or OUTGOING[0]))

    def clean(self) -> dict[str, Any]:
        """Require the fields of the chosen type of payout, and clear those of the other one."""
        values = super().clean()
        self._check_payout(values)
        for side in ("incoming", "outgoing"):
            self._check_amount(values, f"{side}_amount", values.get(f"{side}_currency", ""))
        if not any(
            values.get(name) or self.errors.get(name) for name in ("incoming_amount", "outgoing_amount")
        ):
            self.add_error("incoming_amount", gettext("Enter a pay-in or a payout amount."))
        if not self.submission:
            self.add_error(None, gettext("This form is incomplete. Nothing was prepared. Open a new form."))
        self._check_reference(values.get("reference", ""))
        if not self.errors:
            self._check_business()
        return values

    def is_needed(self, name: str) -> bool:
        """Also one of the two amounts, and the fields of the chosen type of payout."""
        if name == "incoming_amount":
            return not self["outgoing_amount"].value()
        needed = name in _NEEDED.get(str(self["payment_type"].value()), ())
        return needed or super().is_needed(name)

    def content(self) -> PaymentPayload:
        values = self.cleaned_data
        to_bank = values["payment_type"] == BANK
        members = RecipientAccountPayload.model_fields.items()
        no_account = {name: "" for name, member in members if member.is_required()}
        return PaymentPayload(
            business_id=self.business_id,
            reference=values["reference"] or _reference(self.submission),
            incoming_currency=values["incoming_currency"],
            incoming_amount=values["incoming_amount"] or None,
            outgoing_currency=values["outgoing_currency"],
            outgoing_amount=values["outgoing_amount"] or None,
            customer_email=values["customer_email"],
            rate_key=values["rate_key"],
            payment_type=values["payment_type"],
            service_username="" if to_bank else values["service_username"],
            country=values["country"] if to_bank else "",
            **(self.account() if to_bank else no_account),
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
                self.add_error(name, forms.ValidationError(self.fields[name].error_messages["required"]))

    def _check_amount(self, values: dict[str, Any], name: str, currency: str) -> None:
        if not values.get(name) or not currency:
            return
        try:
            values[name] = parse_typed_amount(values[name], currency)
        except forms.ValidationError as exc:
            self.add_error(name, exc)

    def clean_reference(self) -> str:
        """Without blanks that a provider may drop, so that its answer has the same reference."""
        return " ".join(str(self.cleaned_data["reference"]).split())

    def _check_reference(self, reference: str) -> None:
        """Refuse a reference that another payment has; `prepare_operation` checks it again.

        Not while it is being typed: no index has the references, so all payments are read.
        """
        submission = self.submission
        if not reference or submission is None or self.is_being_typed:
            return
        others = Operation.objects.holding_reference(PaymentKind.name, reference).exclude(pk=submission)
        if (other := others.first()) is not None:
            self.add_error("reference", str(ReferenceUsedError(other.reference, reference)))

    def _check_business(self) -> None:
        try:
            self.business_id = business_id()
        except GatewayError as exc:
            problem = gettext(
                "Your business ID could not be read. {problem} Nothing was prepared. Try again."
            )
            self.add_error(None, problem.format(problem=failed_read_text(exc)))
            return
        if not self.business_id:
            self.add_error(
                None,
                gettext(
                    "Your business ID at the provider is unknown. Nothing was prepared. "
                    "Ask the operator to set COUNTERSIGN_GATEWAY_BUSINESS_ID."
                ),
            )


def _reference(submission: UUID | None) -> str:
    """The unique reference of a payment without one: the same for the same form, however often it is submitted."""
    return f"CS-{submission.hex[:20].upper()}" if submission else ""


class PaymentKind(ChangeKind[PaymentPayload]):
    """An off-ramp payment. No debit and no one-time code: the provider creates a deposit address."""

    name = "payment"
    label = _("Off-ramp payment")
    plural = _("Off-ramp payments")
    page = KindPage("off-ramp-payments", _("New off-ramp payment"))
    letter = "P"
    verb = _("Off-ramp payment")
    success_texts = (
        _("Payment created"),
        _("The provider created the payment. The payment details for the customer are on this page."),
    )
    success_label = pgettext_lazy("payment", "Created")  # whether its customer ever pays is another matter
    section = KindSection.MONEY
    permission = PREPARE
    payload_type = PaymentPayload
    form_type = PaymentForm

    def sentence(self, payload: PaymentPayload) -> str:
        holder = self.recipient(payload)
        incoming = _amount(payload.incoming_currency, payload.incoming_amount)
        outgoing = _amount(payload.outgoing_currency, payload.outgoing_amount)
        return gettext("{incoming} → {outgoing} payout to {name}, {detail}").format(
            incoming=incoming, outgoing=outgoing, name=holder.name, detail=holder.detail
        )

    def exposure(self, payload: PaymentPayload) -> Debit:
        """The amount paid out, or the amount paid in if only that is given. No balance of ours is debited."""
        return self.limited_amounts(payload)[0]

    def limited_amounts(self, payload: PaymentPayload) -> list[Debit]:
        """The amounts paid out and paid in, as far as they are given."""
        given = (
            (payload.outgoing_currency, payload.outgoing_amount),
            (payload.incoming_currency, payload.incoming_amount),
        )
        return [Debit(currency, amount) for currency, amount in given if amount is not None]

    def paid_currency(self, payload: PaymentPayload) -> str:
        """That of the payout, whether or not its amount is given."""
        return payload.outgoing_currency

    def recipient(self, payload: PaymentPayload) -> Recipient:
        if payload.payment_type == BANK:
            return payload.recipient
        name = payload.service_username
        return Recipient(name, gettext("user of the provider"), key=user_key(name))

    def decision_facts(self, payload: PaymentPayload) -> Facts:
        open_amount = gettext("at the provider's rate")
        given = {
            gettext("Pay-in"): (payload.incoming_currency, payload.incoming_amount),
            gettext("Payout"): (payload.outgoing_currency, payload.outgoing_amount),
        }
        amounts = [
            (label, _amount(*pair) if pair[1] is not None else f"{pair[0]} · {open_amount}")
            for label, pair in given.items()
        ]
        return [*amounts, *_payout_facts(payload)]

    def facts(self, payload: PaymentPayload) -> Facts:
        return [
            *self.decision_facts(payload),
            (gettext("Customer"), payload.customer_email),
            (
                gettext("Rate"),
                gettext("Rate key {key}").format(key=payload.rate_key)
                if payload.rate_key
                else gettext("Set by the provider when the operation is sent"),
            ),
            (gettext("Our reference"), payload.reference),
            (gettext("Business ID"), payload.business_id),
        ]

    def initial(self, payload: PaymentPayload) -> dict[str, Any]:
        return payload.model_dump(
            exclude={
                "duplicate_reason",
                "reference",
                "business_id",
                "bank",
                "account_name",
                "saved_name",
                "name_not_checked",
                "unchecked_reason",
                "rate_key",
            }
        )

    def provider_reference(self, payload: PaymentPayload) -> str:
        return payload.reference

    def acknowledgement(self, payload: PaymentPayload) -> str:
        return payload.acknowledgement

    def cautions(self, payload: PaymentPayload) -> list[str]:
        return payload.account_warnings if payload.payment_type == BANK else []

    def send(self, gateway: PaymentsGateway, payload: PaymentPayload, otp: SecretStr | None) -> SendReceipt:
        request = PaymentRequest(
            business_id=payload.business_id,
            reference=payload.reference,
            incoming_currency=payload.incoming_currency,
            incoming_amount=payload.incoming_amount,
            outgoing_currency=payload.outgoing_currency,
            outgoing_amount=payload.outgoing_amount,
            customer_email=payload.customer_email,
            payment_type=payload.payment_type,
            rate_key=payload.rate_key or None,
            service_username=payload.service_username or None,
            country=payload.country or None,
            account_number=payload.account_number or None,
            account_name=payload.account_name or None,
            bank=payload.bank or None,
            bank_code=payload.bank_code or None,
        )
        payment = gateway.payments.create(request)
        return SendReceipt(
            status=payment.state,
            is_final=True,
            result=payment_result(payment),
            message=payment.provider_message,
        )

    def is_done(self, gateway: PaymentsGateway, payload: PaymentPayload) -> bool | None:
        """Never known: a lost answer contained the payment's id, and the provider has no list of payments.

        The deposit address would be lost as well. People resolve it by our reference.
        """
        return None

    def response_differences(self, payload: PaymentPayload, result: dict[str, str]) -> list[Difference]:
        """In a currency, or in an amount that was approved. What the provider leaves out is no difference."""
        found = []
        for name, prefix in ((MatchField.PAY_IN, "incoming"), (MatchField.PAYOUT, "outgoing")):
            currency, amount = getattr(payload, f"{prefix}_currency"), getattr(payload, f"{prefix}_amount")
            reported = result.get(f"{prefix}_currency") or currency
            listed = Decimal(result[f"{prefix}_amount"]) if result.get(f"{prefix}_amount") else None
            is_other_amount = None not in {amount, listed} and listed != amount
            if reported.casefold() != currency.casefold() or is_other_amount:
                texts = {"local": _amount(currency, amount), "provider": _amount(reported, listed)}
                found.append(difference(DifferenceCode.FIELD, field=name.value, **texts))
        return found

    def outcome_facts(self, payload: PaymentPayload, result: dict[str, str]) -> Facts:
        labels = {"id": gettext("Payment ID"), "reference": gettext("Reference"), "rate": gettext("Rate")}
        return [(label, result[name]) for name, label in labels.items() if result.get(name)]


RESULT_FIELDS = (
    *("id", "reference", "ramp_reference", "business_id", "state", "payment_type", "address", "account"),
    *("incoming_currency", "incoming_amount", "confirmed_amount", "unconfirmed_amount"),
    *("outgoing_currency", "outgoing_amount", "rate", "customer_email", "sender_username"),
    *("thread_timestamp", "expires_at", "created_at", "updated_at"),
)
"""The members of a `Payment` that are kept of an answer, in the order in which they are shown."""


def payment_result(payment: Payment) -> dict[str, str]:
    """The result stored for a payment: the values that the provider reports, as text by name."""
    texts = {name: _result_text(getattr(payment, name)) for name in RESULT_FIELDS}
    return {name: text for name, text in texts.items() if text}


class PaymentEvent(BaseModel):
    """What a webhook reported of a payment, as text by name, and when the delivery was verified."""

    values: dict[str, str]
    received_at: datetime


_CHANGING = ("state", "incoming_amount", "confirmed_amount", "unconfirmed_amount", "outgoing_amount")
"""The members that a webhook may update: never where the customer pays to, or who is paid."""
_EVENT_KEPT_FOR = timedelta(days=90)


def payment_event(reference: str) -> CachedRead[PaymentEvent]:
    """The last webhook about the payment of this reference, if one arrived within 90 days."""
    key = hashlib.sha256(comparable_reference(reference).encode()).hexdigest()
    return CachedRead(f"payment-event:{key}", TypeAdapter(PaymentEvent), keep_for=_EVENT_KEPT_FOR)


def store_payment_event(reference: str, reported: Payment, received_at: datetime) -> None:
    """Keep what a webhook reported, unless a later one is kept. The caller has verified its signature.

    Nothing is decided by it: it is shown with its time, and never changes an operation.
    """
    values = payment_result(reported)
    event = PaymentEvent(
        values={name: values[name] for name in (*_CHANGING, "updated_at") if name in values},
        received_at=received_at,
    )
    read = payment_event(reference)
    kept = read.cached().value
    if kept is None or _is_later(event, kept):
        read.refresh(lambda: event)


def _is_later(event: PaymentEvent, kept: PaymentEvent) -> bool:
    """By the payment's own time if both report it, since deliveries may arrive late; otherwise by their arrival."""
    changed = [one.values.get("updated_at", "") for one in (event, kept)]
    if all(changed) and changed[0] != changed[1]:
        return datetime.fromisoformat(changed[0]) > datetime.fromisoformat(changed[1])
    return event.received_at >= kept.received_at


def _result_text(value: str | Decimal | datetime | None) -> str:
    match value:
        case None:
            return ""
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat()
    return value


def _payout_facts(payload: PaymentPayload) -> Facts:
    if payload.payment_type == BANK:
        return [*payload.account_facts, (gettext("Bank country"), _country_text(payload.country))]
    return [
        (
            gettext("Recipient"),
            gettext("{username}, user of the provider").format(username=payload.service_username),
        )
    ]


def _amount(currency: str, amount: Decimal | None) -> str:
    return currency if amount is None else f"{currency} {format_amount(amount, currency)}"


def _country_text(country: str) -> str:
    """`Nigeria (NG)`: the name, and what is sent."""
    name = country_name(country)
    return country if name == country else f"{name} ({country})"


def business_id() -> str:
    """The configured business id, otherwise the one in the newest transactions, cached for an hour.

    Every transaction record contains it, and nothing else in the specification does before the first payment.
    Empty if they contain none, or several: then it must be entered. Raises GatewayError.
    """
    return settings.GATEWAY_BUSINESS_ID or _BUSINESS_ID.fetch(_listed_business_id) or ""


def _listed_business_id() -> str | None:
    records = gateway(deadline=FORM_HINT_TIMEOUT).transactions.page(per_page=_RECORDS_READ).records
    ids = {record.business_id for record in records if record.business_id}
    return ids.pop() if len(ids) == 1 else None
