"""The forms of the sandbox console: each validates its input, makes the change, and returns a message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from payments_gateway.operations import OPERATIONS
from payments_gateway.sandbox import lifecycle
from payments_gateway.sandbox.amounts import DECIMALS, minor_units
from payments_gateway.sandbox.books import orders, settlement
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.definitions import (
    ANY_OPERATION,
    FaultDefinition,
    FaultMembers,
    parse_fault,
)
from payments_gateway.sandbox.faults.registry import FAULTS
from payments_gateway.sandbox.faults.responses import GARBAGE_FORMS
from payments_gateway.sandbox.lifecycle import (
    advance_clock,
    open_payments,
    pay_as_customer,
    reset_to_seed,
)
from payments_gateway.sandbox.merchant import details as merchant_details
from payments_gateway.sandbox.settings import SETTLE_AFTER

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class FaultPreset:
    """Members of a fault. `number` is the member taken from the number field, `usual` its default."""

    label: "StrOrPromise"
    members: Mapping[str, object]
    number: str = ""
    usual: Decimal = field(default=Decimal(0))
    whole: bool = False


FAULT_PRESETS: Mapping[str, FaultPreset] = {
    "delay-before": FaultPreset(
        _("Delay, then execute (seconds)"),
        {"kind": "delay", "when": "before_execution"},
        "seconds",
        Decimal(30),
    ),
    "delay-after": FaultPreset(
        _("Execute, then delay (seconds)"),
        {"kind": "delay", "when": "after_execution"},
        "seconds",
        Decimal(30),
    ),
    **{
        f"status-{status}-{when}": FaultPreset(
            format_lazy(label, status=status),
            {"kind": "status", "status": status, "when": f"{when}_execution"},
        )
        for status in (400, 401, 403, 409, 429, 500, 502, 503, 504)
        for when, label in (
            ("before", _("Status {status}, not executed")),
            ("after", _("Status {status}, executed")),
        )
    },
    "drop-read": FaultPreset(
        _("Connection reset before the body is read, not executed"), {"kind": "drop", "when": "before_read"}
    ),
    "drop-unexecuted": FaultPreset(
        _("Connection closed without a response, not executed"), {"kind": "drop", "when": "after_read"}
    ),
    "drop-executed": FaultPreset(
        _("Connection closed without a response, executed"), {"kind": "drop", "when": "after_execution"}
    ),
    "drop-answer": FaultPreset(
        _("Connection reset in mid-response, executed"), {"kind": "drop", "when": "mid_answer"}
    ),
    "truncate": FaultPreset(
        _("Response truncated (bytes), executed"), {"kind": "truncate"}, "at", Decimal(40), whole=True
    ),
    "duplicate": FaultPreset(_("Duplicate record in the transaction list"), {"kind": "duplicate_record"}),
    "hide": FaultPreset(
        _("New records listed late (seconds)"), {"kind": "hide_record_for"}, "seconds", Decimal(60)
    ),
    "rate": FaultPreset(
        _("Rate limit (requests per second)"), {"kind": "rate_limit"}, "per_second", Decimal(1)
    ),
    **{
        f"garbage-{form}": FaultPreset(
            format_lazy(_("Invalid response, executed: {form}"), form=form.replace("_", " ")),
            {"kind": "garbage", "form": form},
        )
        for form in GARBAGE_FORMS
    },
}


def preset_choices() -> list[tuple[str, "StrOrPromise"]]:
    """Values and labels of the select field."""
    return [(name, preset.label) for name, preset in FAULT_PRESETS.items()]


def preset_fault(typed: Mapping[str, object]) -> FaultDefinition:
    """The fault described by the form's fields. RefusedError 400 if they are invalid."""
    preset = FAULT_PRESETS[str(typed["what"])]
    members = {**preset.members, "operation": typed["operation"], **_preset_number(preset, typed["number"])}
    for name in ("times", "containing"):
        if typed[name]:
            members[name] = typed[name]
    return parse_fault(FaultMembers.model_validate(members))


def _preset_number(preset: FaultPreset, typed: object) -> dict[str, object]:
    if not preset.number:
        return {}
    number = typed if isinstance(typed, Decimal) else preset.usual
    if not preset.whole:
        return {preset.number: number}
    if number != int(number):
        raise RefusedError(400, "number must be whole")
    return {preset.number: int(number)}


_HOUR = 3600
_DAY = 24 * _HOUR


class ConsoleForm(forms.Form):
    """A form of the console. `buttons` are (value, label) pairs; the value of the pressed one is in `press`."""

    name: ClassVar[str]
    title: ClassVar["StrOrPromise"]
    buttons: ClassVar[tuple[tuple[str, "StrOrPromise"], ...]]

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, prefix=self.name, label_suffix="")

    @property
    def idle(self) -> str:
        """Why the form cannot be used at present; empty if it can."""
        return ""

    @property
    def pressed(self) -> str:
        """The value of the pressed button."""
        return str(self.data.get("press", ""))

    def clean(self) -> dict[str, object]:
        """Reject an unknown button."""
        if self.pressed not in dict(self.buttons):
            raise forms.ValidationError(gettext("Use one of the buttons of this form."))
        return self.cleaned_data

    def perform(self) -> str:
        """Make the change and return a message. Raises RefusedError; call it on a valid form only."""
        raise NotImplementedError


class SettlementForm(ConsoleForm):
    """Pause, resume or force the settlement of orders."""

    name = "settlement"
    title = _("Settlement")
    buttons = (
        ("pause", _("Pause settlement")),
        ("resume", _("Resume settlement")),
        ("now", _("Settle all now")),
        ("fail", _("Fail all now")),
    )

    def perform(self) -> str:
        if self.pressed == "pause":
            lifecycle.change_options({"settle_after": None})
            return gettext("Settlement is paused. Orders keep the status “processing”.")
        if self.pressed == "resume":
            lifecycle.change_options({"settle_after": SETTLE_AFTER})
            return gettext("Settlement is running. Orders settle after {seconds} s.").format(
                seconds=f"{SETTLE_AFTER:g}"
            )
        settled = settlement.settle_now(failed=True if self.pressed == "fail" else None)
        return ngettext("{count} order settled.", "{count} orders settled.", settled).format(count=settled)


class ClockForm(ConsoleForm):
    """Advance the provider's clock."""

    name = "clock"
    title = _("Advance the clock")
    buttons = (("custom", _("Advance")), ("hour", _("1 hour")), ("day", _("1 day")))

    minutes = forms.IntegerField(label=_("Minutes"), min_value=1, max_value=3650 * 24 * 60, required=False)

    def clean(self) -> dict[str, object]:
        """Minutes are required for the button next to them only."""
        cleaned = super().clean()
        if self.pressed == "custom" and not self.errors and cleaned.get("minutes") is None:
            self.add_error("minutes", gettext("Enter the number of minutes."))
        return cleaned

    def perform(self) -> str:
        steps = {"hour": _HOUR, "day": _DAY}
        seconds = steps.get(self.pressed) or int(self.cleaned_data["minutes"]) * 60
        advance_clock(seconds)
        minutes = seconds // 60
        return ngettext(
            "The provider's clock advanced by {count} minute.",
            "The provider's clock advanced by {count} minutes.",
            minutes,
        ).format(count=minutes)


class DepositForm(ConsoleForm):
    """Receive money from outside."""

    name = "deposit"
    title = _("Deposit")
    buttons = (("deposit", _("Credit deposit")),)

    currency = forms.ChoiceField(label=_("Currency"), choices=[(code, code) for code in DECIMALS])
    amount = forms.CharField(
        label=_("Amount"), max_length=40, widget=forms.TextInput(attrs={"inputmode": "decimal"})
    )
    sender = forms.CharField(label=_("Sender"), max_length=120, initial="Adaeze Obi")

    def perform(self) -> str:
        currency, amount = self.cleaned_data["currency"], self.cleaned_data["amount"]
        orders.deposit(currency, minor_units(amount, currency), self.cleaned_data["sender"])
        return gettext("{currency} {amount} received from {sender}.").format(
            currency=currency, amount=amount, sender=self.cleaned_data["sender"]
        )


class PayInForm(ConsoleForm):
    """Pay an open payment as its customer."""

    name = "pay-in"
    title = _("Customer's pay-in")
    buttons = (("pay", _("Pay in")),)

    reference = forms.ChoiceField(label=_("Payment"))
    amount = forms.CharField(
        label=_("Amount"),
        max_length=40,
        required=False,
        help_text=_("Leave empty to pay the outstanding amount."),
        widget=forms.TextInput,
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
        field = self.fields["reference"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [(each.reference, each.reference) for each in open_payments()]

    @property
    def idle(self) -> str:
        return "" if self.is_bound or open_payments() else gettext("No open payments.")

    def perform(self) -> str:
        payment = pay_as_customer(self.cleaned_data["reference"], self.cleaned_data["amount"] or None)
        return gettext("Pay-in received for {reference}. Status: {state}").format(
            reference=payment.reference, state=payment.state
        )


class KycForm(ConsoleForm):
    """Set whether the merchant has completed KYC."""

    name = "kyc"
    title = _("Merchant's KYC")
    buttons = (("on", _("Mark completed")), ("off", _("Mark not completed")))

    def perform(self) -> str:
        merchant_details.set_kyc(self.pressed == "on")
        if self.pressed == "on":
            return gettext("KYC is completed.")
        return gettext("KYC is not completed. Bank accounts are refused.")


class FaultForm(ConsoleForm):
    """Add one of the most common faults; the control API offers all of them."""

    name = "fault"
    title = _("Add a fault")
    buttons = (("add", _("Add fault")), ("clear", _("Clear all faults")))

    operation = forms.ChoiceField(
        label=_("Request"),
        choices=[(ANY_OPERATION, _("Any request")), *((each.name, each.name) for each in OPERATIONS)],
    )
    what = forms.ChoiceField(choices=preset_choices(), label=_("Fault"))
    number = forms.DecimalField(
        label=_("Value"),
        required=False,
        min_value=0,
        max_value=1_000_000,
        help_text=_("Seconds, requests per second, or bytes"),
    )
    times = forms.IntegerField(
        label=_("Number of times"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text=_("If empty: once. Late listing and rate limit: until cleared."),
    )
    containing = forms.CharField(
        label=_("Containing"),
        required=False,
        max_length=200,
        help_text=_("Only requests that contain this text"),
    )

    def perform(self) -> str:
        """Add the fault, or remove all faults."""
        if self.pressed == "clear":
            cleared = FAULTS.clear(abandon=False)
            return ngettext("{count} fault cleared.", "{count} faults cleared.", cleared).format(
                count=cleared
            )
        fault = FAULTS.add(preset_fault(self.cleaned_data))
        return gettext("Fault {id} added: {kind} for {request}").format(
            id=fault.id, kind=fault.definition.kind, request=fault.definition.operation
        )


class ResetForm(ConsoleForm):
    """Reset the simulation to its seeded state."""

    name = "reset"
    title = _("Reset")
    buttons = (("reset", _("Reset simulation")),)

    def perform(self) -> str:
        count = reset_to_seed()
        return ngettext(
            "Reset to the sample history of {count} transaction.",
            "Reset to the sample history of {count} transactions.",
            count,
        ).format(count=count)


FORMS: Mapping[str, type[ConsoleForm]] = {
    form.name: form
    for form in (SettlementForm, ClockForm, DepositForm, PayInForm, KycForm, FaultForm, ResetForm)
}
