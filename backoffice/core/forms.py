"""Form fields of our own."""

import re
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from payments_gateway.money import decimals_of

_PLAIN = re.compile(r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]+)?)")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_MAX_INTEGER_DIGITS = 15


class AmountField(forms.CharField):
    """An amount of money typed as plain digits with a point: exact, above zero, and never guessed at.

    Notations that could be read in two ways are refused: `1e5`, `1,000.50`, `1.000,50`. The currency's number of
    decimals is checked with `too_precise`, because the currency is another field.
    """

    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "class": "num"})

    def clean(self, value: Any) -> Decimal:
        text = super().clean(value)
        match = _PLAIN.fullmatch(text)
        if match is None:
            raise ValidationError(self._explain(text), code="invalid")
        amount = Decimal(text)
        if amount <= 0:
            raise ValidationError("The amount must be above zero.", code="not_positive")
        if len(match["number"].partition(".")[0].lstrip("0")) > _MAX_INTEGER_DIGITS:
            raise ValidationError("The amount is too large to be right.", code="too_large")
        return amount

    @staticmethod
    def too_precise(amount: Decimal, currency: str) -> str | None:
        """What is wrong with the decimals, if something is."""
        places = decimals_of(currency)
        if -int(amount.normalize().as_tuple().exponent) <= places:
            return None
        return f"{currency} has {places} decimals; the amount has more."

    @staticmethod
    def _explain(text: str) -> str:
        if _GROUPED.fullmatch(text):
            return f"Write the amount without thousands separators: {text.replace(',', '')}"
        return "Write the amount as plain digits with a point, for example 250000.00"
