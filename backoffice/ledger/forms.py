"""What people ask of the service: which transactions, and whose bank account."""

from typing import Any, get_args

from django import forms
from django.core.validators import RegexValidator

from backoffice.ledger import selectors
from payments_gateway import Duration, TransactionType

# The service filters by these two; the specification names no other currency for its list.
CURRENCIES = ("NGN", "USD")
PER_PAGE = (20, 50, 100)


def _choices(everything: str, values: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("", everything), *((value, value) for value in values)]


class TransactionsForm(forms.Form):
    """The filters that the service itself has (GET /transaction)."""

    currency = forms.ChoiceField(required=False, choices=_choices("All", CURRENCIES))
    type = forms.ChoiceField(required=False, choices=_choices("All", get_args(TransactionType)))
    duration = forms.ChoiceField(
        required=False, label="Of the last", choices=_choices("Whole history", get_args(Duration))
    )


class TransactionPageForm(TransactionsForm):
    """The same, and which page of them."""

    per_page = forms.TypedChoiceField(
        required=False,
        label="Per page",
        coerce=int,
        empty_value=None,
        choices=[(size, str(size)) for size in PER_PAGE],
    )
    page = forms.IntegerField(required=False, min_value=1, max_value=1_000_000, widget=forms.HiddenInput)

    def asked(self) -> selectors.Asked:
        """What to ask the service for. Call only on a valid form."""
        values = self.cleaned_data
        return selectors.Asked(
            currency=values["currency"] or None,
            type=values["type"] or None,
            duration=values["duration"] or None,
            page=values["page"] or 1,
            per_page=values["per_page"] or PER_PAGE[1],
        )


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
