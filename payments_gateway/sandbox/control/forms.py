"""The forms of the sandbox console: each validates its input, makes the change, and returns a message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from django import forms
from django.http import QueryDict

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


@dataclass(frozen=True, slots=True)
class FaultPreset:
    """Members of a fault. `number` is the member taken from the number field, `usual` its default."""

    label: str
    members: Mapping[str, object]
    number: str = ""
    usual: Decimal = field(default=Decimal(0))
    whole: bool = False


_NOT_EXECUTED = "not executed"
_EXECUTED = "executed"

FAULT_PRESETS: Mapping[str, FaultPreset] = {
    "delay-before": FaultPreset(
        "wait, then execute (seconds)", {"kind": "delay", "when": "before_execution"}, "seconds", Decimal(30)
    ),
    "delay-after": FaultPreset(
        "execute, then wait (seconds)", {"kind": "delay", "when": "after_execution"}, "seconds", Decimal(30)
    ),
    **{
        f"status-{status}-{when}": FaultPreset(
            f"status {status}, {outcome}", {"kind": "status", "status": status, "when": f"{when}_execution"}
        )
        for status in (400, 401, 403, 409, 429, 500, 502, 503, 504)
        for when, outcome in (("before", _NOT_EXECUTED), ("after", _EXECUTED))
    },
    "drop-read": FaultPreset(
        f"reset before the body is read, {_NOT_EXECUTED}", {"kind": "drop", "when": "before_read"}
    ),
    "drop-unexecuted": FaultPreset(
        f"close without an answer, {_NOT_EXECUTED}", {"kind": "drop", "when": "after_read"}
    ),
    "drop-executed": FaultPreset(
        f"close without an answer, {_EXECUTED}", {"kind": "drop", "when": "after_execution"}
    ),
    "drop-answer": FaultPreset(f"reset in mid-answer, {_EXECUTED}", {"kind": "drop", "when": "mid_answer"}),
    "truncate": FaultPreset(
        f"cut the answer (bytes), {_EXECUTED}", {"kind": "truncate"}, "at", Decimal(40), whole=True
    ),
    "duplicate": FaultPreset("a record comes twice in the list", {"kind": "duplicate_record"}),
    "hide": FaultPreset("the list lags (seconds)", {"kind": "hide_record_for"}, "seconds", Decimal(60)),
    "rate": FaultPreset("rate limit (requests per second)", {"kind": "rate_limit"}, "per_second", Decimal(1)),
    **{
        f"garbage-{form}": FaultPreset(
            f"garbage: {form.replace('_', ' ')}, {_EXECUTED}", {"kind": "garbage", "form": form}
        )
        for form in GARBAGE_FORMS
    },
}


def preset_choices() -> list[tuple[str, str]]:
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
    title: ClassVar[str]
    buttons: ClassVar[tuple[tuple[str, str], ...]]

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
            raise forms.ValidationError("Press one of the buttons of the form.")
        return self.cleaned_data

    def perform(self) -> str:
        """Make the change and return a message. Raises RefusedError; call it on a valid form only."""
        raise NotImplementedError


class SettlementForm(ConsoleForm):
    """Pause, resume or force the settlement of orders."""

    name = "settlement"
    title = "Settlement"
    buttons = (("pause", "Pause"), ("resume", "Resume"), ("now", "Settle now"), ("fail", "Fail now"))

    def perform(self) -> str:
        if self.pressed == "pause":
            lifecycle.change_options({"settle_after": None})
            return "Settlement is paused: orders stay processing until you settle them."
        if self.pressed == "resume":
            lifecycle.change_options({"settle_after": SETTLE_AFTER})
            return f"Settlement goes on by itself after {SETTLE_AFTER:g} s."
        settled = settlement.settle_now(failed=True if self.pressed == "fail" else None)
        return f"Settled: {settled}."


class ClockForm(ConsoleForm):
    """Advance the provider's clock."""

    name = "clock"
    title = "Fast-forward"
    buttons = (("custom", "Forward"), ("hour", "1 hour"), ("day", "1 day"))

    minutes = forms.IntegerField(min_value=1, max_value=3650 * 24 * 60, required=False)

    def clean(self) -> dict[str, object]:
        """Minutes are required for the button next to them only."""
        cleaned = super().clean()
        if self.pressed == "custom" and not self.errors and cleaned.get("minutes") is None:
            self.add_error("minutes", "Say how many minutes.")
        return cleaned

    def perform(self) -> str:
        steps = {"hour": _HOUR, "day": _DAY}
        seconds = steps.get(self.pressed) or int(self.cleaned_data["minutes"]) * 60
        advance_clock(seconds)
        return f"The service's clock went forward by {seconds // 60} minutes."


class DepositForm(ConsoleForm):
    """Receive money from outside."""

    name = "deposit"
    title = "Deposit"
    buttons = (("deposit", "Deposit"),)

    currency = forms.ChoiceField(choices=[(code, code) for code in DECIMALS])
    amount = forms.CharField(max_length=40, widget=forms.TextInput(attrs={"inputmode": "decimal"}))
    sender = forms.CharField(max_length=120, initial="Adaeze Obi")

    def perform(self) -> str:
        currency, amount = self.cleaned_data["currency"], self.cleaned_data["amount"]
        orders.deposit(currency, minor_units(amount, currency), self.cleaned_data["sender"])
        return f"{currency} {amount} arrived from {self.cleaned_data['sender']}."


class PayInForm(ConsoleForm):
    """Pay an open payment as its customer."""

    name = "pay-in"
    title = "Customer pays"
    buttons = (("pay", "Pay in"),)

    reference = forms.ChoiceField(label="Payment")
    amount = forms.CharField(
        max_length=40, required=False, help_text="Empty: all that is missing", widget=forms.TextInput
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
        field = self.fields["reference"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [(each.reference, each.reference) for each in open_payments()]

    @property
    def idle(self) -> str:
        return "" if self.is_bound or open_payments() else "No payment is open."

    def perform(self) -> str:
        payment = pay_as_customer(self.cleaned_data["reference"], self.cleaned_data["amount"] or None)
        return f"The customer of {payment.reference} has paid; the payment is {payment.state}."


class KycForm(ConsoleForm):
    """Set whether the merchant has completed KYC."""

    name = "kyc"
    title = "KYC of the merchant"
    buttons = (("on", "Completed"), ("off", "Not completed"))

    def perform(self) -> str:
        merchant_details.set_kyc(self.pressed == "on")
        return (
            f"KYC is {'completed' if self.pressed == 'on' else 'not completed: bank accounts are refused'}."
        )


class FaultForm(ConsoleForm):
    """Add one of the most common faults; the control API offers all of them."""

    name = "fault"
    title = "Provoke a fault"
    buttons = (("add", "Add fault"), ("clear", "Clear all faults"))

    operation = forms.ChoiceField(
        choices=[(ANY_OPERATION, "any operation"), *((each.name, each.name) for each in OPERATIONS)]
    )
    what = forms.ChoiceField(choices=preset_choices(), label="What happens")
    number = forms.DecimalField(
        required=False, min_value=0, max_value=1_000_000, help_text="Seconds, requests per second, or bytes"
    )
    times = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text="Empty: once; a lag or a rate until cleared",
    )
    containing = forms.CharField(required=False, max_length=200, help_text="Only requests with this text")

    def perform(self) -> str:
        """Add the fault, or remove all faults."""
        if self.pressed == "clear":
            return f"Faults taken away: {FAULTS.clear(abandon=False)}."
        fault = FAULTS.add(preset_fault(self.cleaned_data))
        return f"Fault {fault.id} is in force: {fault.definition.kind} for {fault.definition.operation}."


class ResetForm(ConsoleForm):
    """Reset the simulation to its seeded state."""

    name = "reset"
    title = "Reset"
    buttons = (("reset", "Forget everything since the seed"),)

    def perform(self) -> str:
        return f"Everything is forgotten but the seeded history of {reset_to_seed()} transactions."


FORMS: Mapping[str, type[ConsoleForm]] = {
    form.name: form
    for form in (SettlementForm, ClockForm, DepositForm, PayInForm, KycForm, FaultForm, ResetForm)
}
