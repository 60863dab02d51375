"""Conversion: NGN into USD or USD into NGN, within the merchant's balances (POST /balance/convert)."""

from datetime import timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.web.formatting import format_amount, zoned_time
from backoffice.ledger import rates
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
from backoffice.operations.kinds.form_fields import AmountForm, amount_field
from backoffice.operations.models.reason_codes import MatchField
from payments_gateway import CURRENCIES, Conversion, PaymentsGateway, TransactionRecord

DIRECTIONS = {"NGN-USD": _("NGN to USD"), "USD-NGN": _("USD to NGN")}


class ConversionPayload(Payload):
    """The amount, the currencies and the last known rate. The provider sets the actual rate."""

    OBSERVED = frozenset({"known_rate", "known_rate_from"})

    from_currency: str
    to_currency: str
    amount: Decimal
    known_rate: Decimal | None  # units of `to_currency` for one of `from_currency`
    known_rate_from: str = ""  # the source of the rate, and its time

    @property
    def expected(self) -> Decimal | None:
        """The approximate amount received, at the known rate."""
        if self.known_rate is None:
            return None
        unit = Decimal(1).scaleb(-CURRENCIES[self.to_currency].decimals)
        return (self.amount * self.known_rate).quantize(unit, rounding=ROUND_DOWN)

    @property
    def estimate(self) -> Facts:
        """Label and value of the estimate; empty if no rate is known."""
        if self.known_rate is None or self.expected is None:
            return []
        arrives = f"{self.to_currency} {format_amount(self.expected, self.to_currency)}"
        rate = rate_text(self.from_currency, self.to_currency, self.known_rate)
        return [
            (
                gettext("Last reported rate"),
                f"{rate} · {self.known_rate_from}" if self.known_rate_from else rate,
            ),
            (
                gettext("You receive"),
                gettext("About {amount}. The provider sets the rate when the conversion is sent.").format(
                    amount=arrives
                ),
            ),
        ]


class ConversionForm(AmountForm):
    """Asks for direction and amount, and shows the last known rate."""

    direction = forms.ChoiceField(choices=list(DIRECTIONS.items()), label=_("Direction"))
    amount = amount_field(_("You sell"))

    rate: rates.ConversionRate | None = None

    @property
    def debit_currencies(self) -> list[str]:
        return [direction.partition("-")[0] for direction in DIRECTIONS]

    def clean(self) -> dict[str, Any]:
        """Read the last known rate; the form is valid without one."""
        values = super().clean()
        if values.get("direction"):
            self.rate = rates.last_rate(*values["direction"].split("-"))
        return values

    def debited(self, values: dict[str, Any]) -> str:
        return str(values.get("direction", "")).partition("-")[0]

    def content(self) -> ConversionPayload:
        given, received = self.cleaned_data["direction"].split("-")
        return ConversionPayload(
            from_currency=given,
            to_currency=received,
            amount=self.cleaned_data["amount"],
            known_rate=self.rate.rate if self.rate else None,
            known_rate_from=rate_source(self.rate, (given, received)) if self.rate else "",
        )

    @property
    def estimate(self) -> ConversionPayload | None:
        """The payload to estimate, once direction and amount are valid."""
        readable = not self.errors.get("amount") and not self.errors.get("direction")
        return self.content() if self.is_bound and readable else None


class ConversionKind(MoneyKind[ConversionPayload]):
    """Between the merchant's own balances; no one-time code. Expires early, since the rate changes."""

    name = "conversion"
    label = _("Conversion")
    plural = _("Conversions")
    page = KindPage("conversions", _("New conversion"))
    letter = "C"
    verb = _("Convert")
    payload_type = ConversionPayload
    form_type = ConversionForm

    @property
    def lifetime(self) -> timedelta:
        return timedelta(minutes=self.minutes)

    @property
    def minutes(self) -> int:
        """Its lifetime in minutes, for the form."""
        return settings.CONVERSION_LIFETIME_MINUTES

    def sentence(self, payload: ConversionPayload) -> str:
        amount = format_amount(payload.amount, payload.from_currency)
        return gettext("Convert {currency} {amount} to {target_currency}").format(
            currency=payload.from_currency, amount=amount, target_currency=payload.to_currency
        )

    def debit(self, payload: ConversionPayload) -> Debit:
        return Debit(payload.from_currency, payload.amount)

    def recipient(self, payload: ConversionPayload) -> Recipient:
        return Recipient(
            gettext("Your own balances"),
            gettext("{source} to {target}").format(source=payload.from_currency, target=payload.to_currency),
        )

    def facts(self, payload: ConversionPayload) -> Facts:
        facts = [
            (
                gettext("You sell"),
                f"{payload.from_currency} {format_amount(payload.amount, payload.from_currency)}",
            ),
            (gettext("You buy"), payload.to_currency),
        ]
        return [
            *facts,
            *(
                payload.estimate
                or [(gettext("Rate"), gettext("Set by the provider when the operation is sent"))]
            ),
        ]

    def initial(self, payload: ConversionPayload) -> dict[str, Any]:
        return {"direction": f"{payload.from_currency}-{payload.to_currency}", "amount": payload.amount}

    def send(
        self, gateway: PaymentsGateway, payload: ConversionPayload, otp: SecretStr | None
    ) -> SendReceipt:
        request = Conversion(
            from_currency=payload.from_currency, to_currency=payload.to_currency, amount=payload.amount
        )
        detail = gateway.balances.convert(request)
        received = {} if detail.receive_amount is None else {"received": f"{detail.receive_amount:f}"}
        return SendReceipt(
            detail.transaction_id, detail.status, result=received, message=detail.provider_message
        )

    def outcome_facts(self, payload: ConversionPayload, result: dict[str, str]) -> Facts:
        if not result.get("received"):
            return []
        received = Decimal(result["received"])
        facts = [
            (gettext("Received"), f"{payload.to_currency} {format_amount(received, payload.to_currency)}")
        ]
        if not received:
            return facts
        rate = received / payload.amount
        return [*facts, (gettext("Rate"), rate_text(payload.from_currency, payload.to_currency, rate))]

    def match_fields(self, payload: ConversionPayload, record: TransactionRecord) -> list[FieldMatch]:
        """The fields of the debit's record; the credit is a record of its own."""
        given = optional_match_field(MatchField.FROM_CURRENCY, payload.from_currency, record.from_currency)
        return [*common_match_fields("conversion", self.debit(payload), record), given]


def rate_source(rate: rates.ConversionRate, pair: tuple[str, str]) -> str:
    """The conversion that had the rate and when, or that the provider quoted it; stored, so in one language."""
    with translation.override(settings.LANGUAGE_CODE):
        at = f", {zoned_time(rate.known_at)}" if rate.known_at else ""
    if rate.from_conversion is None:
        return f"quoted by the provider{at}"
    direction = " to ".join(rate.from_conversion)
    opposite = "" if rate.from_conversion == pair else " (opposite direction; the rate may differ)"
    return f"from a conversion of {direction}{at}{opposite}"


def rate_text(from_currency: str, to_currency: str, rate: Decimal) -> str:
    """The rate as people quote it: naira for one dollar, whatever the direction."""
    if from_currency == "NGN":
        from_currency, to_currency, rate = to_currency, from_currency, 1 / rate
    return f"{from_currency} 1 = {to_currency} {rate:,.2f}"
