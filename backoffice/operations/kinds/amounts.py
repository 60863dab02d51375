"""Amounts in forms: read exactly as typed, and held against the balance that the service tells."""

from decimal import Decimal
from typing import Any

from django import forms

from backoffice.core.display import format_amount
from backoffice.core.gateway import PATIENCE_OF_A_HINT
from backoffice.ledger import selectors as ledger
from backoffice.operations.kinds.base import KindForm
from payments_gateway import AmountError, GatewayError, parse_amount


def amount_field(label: str = "Amount") -> forms.CharField:
    """Text, because only text says exactly what was typed."""
    return forms.CharField(
        label=label,
        max_length=40,
        error_messages={"required": "Enter an amount."},
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )


def currency_field(*codes: str, label: str = "Currency") -> forms.ChoiceField:
    """One of these currencies."""
    return forms.ChoiceField(choices=[(code, code) for code in codes], label=label)


class AmountForm(KindForm):
    """A form whose `amount` leaves the balance in its `currency`; a subclass declares both fields."""

    def clean(self) -> dict[str, Any]:
        """Read the amount, and refuse what is above the balance."""
        values = super().clean() or self.cleaned_data
        currency = self.debited(values)
        if values.get("amount") and currency:
            self._check_amount(values, currency)
        return values

    def debited(self, values: dict[str, Any]) -> str:
        """The currency of the balance that the amount leaves; empty while it is not chosen."""
        return str(values.get("currency", ""))

    def _check_amount(self, values: dict[str, Any], currency: str) -> None:
        try:
            values["amount"] = parse_amount(values["amount"], currency)
        except AmountError as exc:
            self.add_error("amount", str(exc))
            return
        problem = above_balance(values["amount"], currency)
        if problem:
            self.add_error("amount", problem)


def above_balance(amount: Decimal, currency: str) -> str:
    """Why the amount cannot leave the balance, as the service tells it now; empty if it can, or if it cannot be told.

    The service itself has the last word; this only spares people a refusal.
    """
    try:
        balance = ledger.current_balance(currency, patience=PATIENCE_OF_A_HINT)
    except GatewayError:
        return ""
    if balance is None or amount <= balance:
        return ""
    return f"The balance is {currency} {format_amount(balance, currency)}; the amount is above it."
