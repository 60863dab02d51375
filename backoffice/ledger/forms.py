"""Filter forms of the ledger: transactions, their list, and a currency with a period for statements and continuity.

Used by the pages here, by the transaction pages of operations, and by reports.
"""

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from django import forms
from django.core.validators import RegexValidator

from backoffice.core.fields import DECIMALS, DIGITS
from backoffice.core.web.forms import ListFilterForm, day_field, end_of_day, start_of_day
from backoffice.core.web.pagination import Order
from backoffice.ledger.transactions.filters import (
    MIN_TEXT_LENGTH,
    ORDERS,
    TransactionFilter,
    is_searchable,
    known_facets,
)

_DIRECTIONS = (("in", "In"), ("out", "Out"))
# Filters stand in the address, and so in logs and histories, where account numbers do not belong. The service tells
# none with its transactions, so nothing is lost; by the same pattern the browser does not even send one.
_NO_ACCOUNT = r"(?![\d\s\-]{8,}$).*"
_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_ADVICE = "Account numbers do not belong into an address. Use the search at the top, or the whole id under Transaction."


def _facet_choices(column: str, everything: str) -> Callable[[], list[tuple[str, str]]]:
    """The words that the service has used so far, as choices."""

    def choices() -> list[tuple[str, str]]:
        words = {str(getattr(facet, column)) for facet in known_facets()}
        return [("", everything), *((word, word) for word in sorted(words - {""}))]

    return choices


class AmountField(forms.DecimalField):
    """An amount to look for, in digits, or grouped as amounts are shown here. What moves money takes digits alone."""

    def to_python(self, value: Any) -> Any:
        """`1,234,567.89` is what `1234567.89` is; commas in other places are refused."""
        text = str(value or "").strip()
        return super().to_python(text.replace(",", "") if _GROUPED.fullmatch(text) else value)


def _amount_field(label: str) -> AmountField:
    return AmountField(
        required=False,
        label=label,
        min_value=0,
        max_digits=DIGITS,
        decimal_places=DECIMALS,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "size": "10", "autocomplete": "off"}),
        error_messages={"invalid": "Enter an amount in digits, for example 1000.50 or 1,000.50."},
    )


def _require_searchable(text: str) -> None:
    if len(text) >= MIN_TEXT_LENGTH and not is_searchable(text):
        raise forms.ValidationError(
            "Type letters or digits of it, too: other signs alone cannot be looked for."
        )


def _text_field(label: str, placeholder: str, **attributes: str) -> forms.CharField:
    return forms.CharField(
        required=False,
        label=label,
        min_length=MIN_TEXT_LENGTH,
        max_length=200,
        validators=[RegexValidator(rf"^{_NO_ACCOUNT}\Z", _ADVICE), _require_searchable],
        widget=forms.TextInput(
            attrs={
                "placeholder": placeholder,
                "autocomplete": "off",
                "pattern": _NO_ACCOUNT,
                "title": _ADVICE,
                **attributes,
            }
        ),
        error_messages={"min_length": f"Type at least {MIN_TEXT_LENGTH} characters of it."},
    )


class TransactionFilterForm(ListFilterForm):
    """The filters of the mirror's transactions, for their list and for a report of them."""

    text = _text_field("Search", "Part of a name, or a whole id", type="search")
    currency = forms.ChoiceField(required=False, choices=_facet_choices("currency", "Any currency"))
    type = forms.ChoiceField(required=False, choices=_facet_choices("type", "Any type"))
    status = forms.ChoiceField(required=False, choices=_facet_choices("status", "Any status"))
    direction = forms.ChoiceField(required=False, choices=[("", "In and out"), *_DIRECTIONS])
    least = _amount_field("Amount from")
    most = _amount_field("Amount to")
    counterparty = _text_field("With", "Part of the name")
    transaction_id = forms.CharField(
        required=False,
        label="Transaction",
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "The whole id", "autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Refuse an amount range that ends before it begins."""
        values = super().clean()
        least, most = values.get("least"), values.get("most")
        if least is not None and most is not None and least > most:
            self.add_error("most", "This is less than the amount before it. Enter the same or more.")
        return values

    def chosen(self) -> TransactionFilter:
        """Which transactions. Call only on a valid form."""
        values = {name: self.cleaned_data[name] for name in _FILTER_FIELDS}
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return TransactionFilter(
            since=start_of_day(since) if since else None, until=end_of_day(until) if until else None, **values
        )


_FILTER_FIELDS = tuple(name for name in TransactionFilterForm.base_fields if name not in {"since", "until"})


_NEIGHBOURS = {
    "": ("Newer", "Older"),
    "oldest": ("Older", "Newer"),
    "largest": ("Larger", "Smaller"),
    "smallest": ("Smaller", "Larger"),
}


class TransactionListForm(TransactionFilterForm):
    """The same, and how the list is ordered."""

    sort = forms.ChoiceField(
        required=False, label="Order", choices=[(name, label) for name, (label, _) in ORDERS.items()]
    )
    not_narrowing = frozenset({"sort"})

    @property
    def order(self) -> Order:
        """The chosen order. Call only on a valid form."""
        return ORDERS[self.cleaned_data["sort"]][1]

    @property
    def fields_beside_text(self) -> list[forms.BoundField]:
        """What stands in the fold."""
        return [field for field in self.visible_fields() if field.name != "text"]

    @property
    def before(self) -> str:
        """What the page before this one has, in a word."""
        return _NEIGHBOURS[self.cleaned_data["sort"]][0]

    @property
    def behind(self) -> str:
        """What the next page has."""
        return _NEIGHBOURS[self.cleaned_data["sort"]][1]

    @property
    def is_in_time(self) -> bool:
        """Whether a day has its place in this order."""
        return self.order[0].lstrip("-") == "occurred_at"


class JumpToDayForm(forms.Form):
    """A day to go to within the list: no filter, so that a day that makes no sense takes no list away."""

    jump = day_field("Go to")

    @property
    def day(self) -> date | None:
        """None where no day is asked for, or one that makes no sense: then the field says so."""
        return self.cleaned_data["jump"] if self.is_valid() else None


class CurrencyPeriodForm(ListFilterForm):
    """A currency and a period, for statements and for the breaks of the balances, as pages and as reports."""

    currency = forms.ChoiceField(required=False, choices=_facet_choices("currency", "Every currency"))

    @property
    def moments(self) -> tuple[datetime | None, datetime | None]:
        """Where the period begins, and where it has ended. Call only on a valid form."""
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return start_of_day(since) if since else None, end_of_day(until) if until else None
