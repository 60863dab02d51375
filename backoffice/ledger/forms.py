"""What people ask for: which transactions, and whose bank account."""

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from django import forms
from django.core.validators import RegexValidator

from backoffice.core.fields import DECIMALS, DIGITS
from backoffice.core.filters import NarrowingForm
from backoffice.core.pagination import Order
from backoffice.core.period import day_field, end_of, start_of
from backoffice.ledger import selectors
from backoffice.ledger.chosen import ORDERS, SHORTEST_TEXT, Chosen, is_indexed
from backoffice.ledger.facets import known_facets

_DIRECTIONS = (("in", "In"), ("out", "Out"))
# Filters stand in the address, and so in logs and histories, where account numbers do not belong. The service tells
# none with its transactions, so nothing is lost; by the same pattern the browser does not even send one.
_NO_ACCOUNT = r"(?![\d\s\-]{8,}$).*"
_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_ADVICE = "Account numbers do not belong into an address. Use the search at the top, or the whole id under Transaction."


def _words(column: str, everything: str) -> Callable[[], list[tuple[str, str]]]:
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


def _amount(label: str) -> AmountField:
    return AmountField(
        required=False,
        label=label,
        min_value=0,
        max_digits=DIGITS,
        decimal_places=DECIMALS,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "size": "10", "autocomplete": "off"}),
        error_messages={"invalid": "Enter an amount in digits, for example 1000.50 or 1,000.50."},
    )


def _demand_indexed(text: str) -> None:
    if len(text) >= SHORTEST_TEXT and not is_indexed(text):
        raise forms.ValidationError(
            "Type letters or digits of it, too: other signs alone cannot be looked for."
        )


def _text(label: str, placeholder: str, **attributes: str) -> forms.CharField:
    return forms.CharField(
        required=False,
        label=label,
        min_length=SHORTEST_TEXT,
        max_length=200,
        validators=[RegexValidator(rf"^{_NO_ACCOUNT}\Z", _ADVICE), _demand_indexed],
        widget=forms.TextInput(
            attrs={
                "placeholder": placeholder,
                "autocomplete": "off",
                "pattern": _NO_ACCOUNT,
                "title": _ADVICE,
                **attributes,
            }
        ),
        error_messages={"min_length": f"Type at least {SHORTEST_TEXT} characters of it."},
    )


class TransactionsForm(NarrowingForm):
    """The filters of the mirror's transactions, for their list and for a report of them."""

    text = _text("Search", "Part of a name, or a whole id", type="search")
    currency = forms.ChoiceField(required=False, choices=_words("currency", "Any currency"))
    type = forms.ChoiceField(required=False, choices=_words("type", "Any type"))
    status = forms.ChoiceField(required=False, choices=_words("status", "Any status"))
    direction = forms.ChoiceField(required=False, choices=[("", "In and out"), *_DIRECTIONS])
    least = _amount("Amount from")
    most = _amount("Amount to")
    counterparty = _text("With", "Part of the name")
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

    def chosen(self) -> Chosen:
        """Which transactions. Call only on a valid form."""
        values = {name: self.cleaned_data[name] for name in _CHOSEN}
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return Chosen(
            since=start_of(since) if since else None, until=end_of(until) if until else None, **values
        )


_CHOSEN = tuple(name for name in TransactionsForm.base_fields if name not in {"since", "until"})


_NEIGHBOURS = {
    "": ("Newer", "Older"),
    "oldest": ("Older", "Newer"),
    "largest": ("Larger", "Smaller"),
    "smallest": ("Smaller", "Larger"),
}


class TransactionListForm(TransactionsForm):
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


class JumpForm(forms.Form):
    """A day to go to within the list: no filter, so that a day that makes no sense takes no list away."""

    jump = day_field("Go to")

    @property
    def day(self) -> date | None:
        """None where no day is asked for, or one that makes no sense: then the field says so."""
        return self.cleaned_data["jump"] if self.is_valid() else None


class BooksForm(NarrowingForm):
    """A currency and a period, for statements and for the breaks of the balances, as pages and as reports."""

    currency = forms.ChoiceField(required=False, choices=_words("currency", "Every currency"))

    @property
    def moments(self) -> tuple[datetime | None, datetime | None]:
        """Where the period begins, and where it has ended. Call only on a valid form."""
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return start_of(since) if since else None, end_of(until) if until else None


class AccountForm(forms.Form):
    """A bank account, to learn who holds it."""

    bank_code = forms.ChoiceField(label="Bank")
    account_number = forms.CharField(
        label="Account number",
        help_text="10 digits",
        validators=[RegexValidator(r"^[0-9]{10}\Z", "An account number has exactly 10 digits.")],
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": "34"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bank_code: Any = self.fields["bank_code"]
        bank_code.choices = [
            ("", "Choose a bank"),
            *sorted(selectors.banks().items(), key=lambda item: item[1]),
        ]
