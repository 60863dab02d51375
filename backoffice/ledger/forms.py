"""Filter forms of the ledger: transactions, their summary, and currency with period for statements and continuity.

Used by the pages here, by the transaction pages of operations, and by reports.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from django import forms
from django.core.validators import RegexValidator
from django.utils.text import format_lazy
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from backoffice.core.fields import DECIMALS, DIGITS
from backoffice.core.web.formatting import without_separators
from backoffice.core.web.forms import (
    ListFilterForm,
    PageForm,
    SearchField,
    day_field,
    end_of_day,
    start_of_day,
)
from backoffice.core.web.pagination import Order
from backoffice.ledger.models import STATUS_LABELS, TYPE_LABELS
from backoffice.ledger.transactions.filters import (
    MIN_TEXT_LENGTH,
    ORDERS,
    TransactionFilter,
    is_searchable,
    known_facets,
)
from backoffice.ledger.transactions.summary import SummaryQuery
from payments_gateway import Duration, FiatCurrency

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_DIRECTIONS = (("in", pgettext_lazy("direction", "In")), ("out", pgettext_lazy("direction", "Out")))
# Filters are part of the URL, and so of logs and histories, where account numbers do not belong. The
# provider's transactions contain none, so nothing is lost; with the same pattern the browser does not even
# send one.
_NO_ACCOUNT_NUMBER = r"(?![\d\s\-]{8,}$).*"
_ACCOUNT_NUMBER_ADVICE = _(
    "Account numbers must not appear in URLs. Use the search at the top, or filter by transaction ID. "
    "To find an amount, write it with separators: 12,500,000.00."
)


def _facet_choices(
    column: str, empty_label: "StrOrPromise", labels: "Mapping[str, StrOrPromise]" = MappingProxyType({})
) -> Callable[[], list[tuple[str, "StrOrPromise"]]]:
    """The values that have occurred in transactions, as choices; without a label, as the provider writes them."""

    def choices() -> list[tuple[str, "StrOrPromise"]]:
        values = {str(getattr(facet, column)) for facet in known_facets()}
        return [("", empty_label), *((value, labels.get(value, value)) for value in sorted(values - {""}))]

    return choices


class AmountField(forms.DecimalField):
    """An amount to search for, with or without separators."""

    def to_python(self, value: Any) -> Any:
        return super().to_python(without_separators(str(value or "").strip()))


def _amount_field(label: "StrOrPromise") -> AmountField:
    return AmountField(
        required=False,
        label=label,
        min_value=0,
        max_digits=DIGITS,
        decimal_places=DECIMALS,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "size": "10", "autocomplete": "off"}),
        error_messages={"invalid": _("Enter an amount, for example 1000.50 or 1,000.50.")},
    )


def _require_searchable(text: str) -> None:
    if len(text) >= MIN_TEXT_LENGTH and not is_searchable(text):
        raise forms.ValidationError(
            gettext("Include letters or digits: other characters alone cannot be searched for.")
        )


def _text_field(label: "StrOrPromise", placeholder: "StrOrPromise", **attributes: str) -> forms.CharField:
    return SearchField(
        required=False,
        label=label,
        min_length=MIN_TEXT_LENGTH,
        max_length=200,
        validators=[RegexValidator(rf"^{_NO_ACCOUNT_NUMBER}\Z", _ACCOUNT_NUMBER_ADVICE), _require_searchable],
        widget=forms.TextInput(
            attrs={
                "placeholder": placeholder,
                "autocomplete": "off",
                "pattern": _NO_ACCOUNT_NUMBER,
                "title": _ACCOUNT_NUMBER_ADVICE,
                **attributes,
            }
        ),
        error_messages={"min_length": format_lazy(_("Enter at least {n} characters."), n=MIN_TEXT_LENGTH)},
    )


class TransactionFilterForm(ListFilterForm):
    """The filters of mirrored transactions, for their list and their report."""

    text = _text_field(pgettext_lazy("noun", "Search"), _("Name, amount or full ID"), type="search")
    currency = forms.ChoiceField(
        label=_("Currency"), required=False, choices=_facet_choices("currency", _("All currencies"))
    )
    type = forms.ChoiceField(
        label=_("Type"), required=False, choices=_facet_choices("type", _("All types"), TYPE_LABELS)
    )
    status = forms.ChoiceField(
        label=_("Status"), required=False, choices=_facet_choices("status", _("All statuses"), STATUS_LABELS)
    )
    direction = forms.ChoiceField(
        label=_("Direction"), required=False, choices=[("", _("In and out")), *_DIRECTIONS]
    )
    min_amount = _amount_field(_("Minimum amount"))
    max_amount = _amount_field(_("Maximum amount"))
    counterparty = _text_field(_("Counterparty"), _("Part of the name"))
    transaction_id = forms.CharField(
        required=False,
        label=_("Transaction ID"),
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": _("Full ID"), "autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Reject an amount range that ends before it begins."""
        values = super().clean()
        min_amount, max_amount = values.get("min_amount"), values.get("max_amount")
        if min_amount is not None and max_amount is not None and min_amount > max_amount:
            self.add_error(
                "max_amount",
                gettext("The maximum amount is below the minimum amount. Enter the same amount or more."),
            )
        return values

    def transaction_filter(self) -> TransactionFilter:
        """The filter. Call only on a valid form."""
        values = {name: self.cleaned_data[name] for name in _FILTER_FIELDS}
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return TransactionFilter(
            since=start_of_day(since) if since else None, until=end_of_day(until) if until else None, **values
        )


_FILTER_FIELDS = tuple(name for name in TransactionFilterForm.base_fields if name not in {"since", "until"})


_PAGE_LABELS = {
    "": (_("Newer"), _("Older")),
    "oldest": (_("Older"), _("Newer")),
    "largest": (_("Larger"), _("Smaller")),
    "smallest": (_("Smaller"), _("Larger")),
}


class TransactionListForm(TransactionFilterForm):
    """The transaction filters and the sort order of the list."""

    sort = forms.ChoiceField(
        required=False, label=_("Sort by"), choices=[(name, label) for name, (label, _) in ORDERS.items()]
    )
    display_fields = frozenset({"sort"})

    @property
    def order(self) -> Order:
        """The chosen order. Call only on a valid form."""
        return ORDERS[self.cleaned_data["sort"]][1]

    @property
    def previous_label(self) -> str:
        """The label of the link to the previous page."""
        return str(_PAGE_LABELS[self.cleaned_data["sort"]][0])

    @property
    def next_label(self) -> str:
        """The label of the link to the next page."""
        return str(_PAGE_LABELS[self.cleaned_data["sort"]][1])

    @property
    def is_by_time(self) -> bool:
        """Whether the order is one by time, so that the list can jump to a day."""
        return self.order[0].lstrip("-") == "occurred_at"


class JumpToDayForm(PageForm):
    """A day to jump to within the list. It is not a filter, so an invalid day does not hide the list."""

    jump = day_field(_("Go to"))

    @property
    def day(self) -> date | None:
        """The day; None if there is none or it is invalid, which the field then reports."""
        return self.cleaned_data["jump"] if self.is_valid() else None


_SPAN_LABELS: "Mapping[Duration, StrOrPromise]" = MappingProxyType(
    {
        "one day": _("Past day"),
        "one week": _("Past week"),
        "one month": _("Past month"),
        "one year": _("Past year"),
    }
)


class SummaryForm(PageForm):
    """The filters of the provider's summary: those of the specification, which defines no other period or currency.

    Without any of them in the query string, the last month of one currency.
    """

    currency = forms.ChoiceField(
        label=_("Currency"),
        required=False,
        choices=[("", _("All currencies")), *((code, code) for code in get_args(FiatCurrency))],
    )
    type = forms.ChoiceField(
        label=_("Type"), required=False, choices=[("", _("All types")), *TYPE_LABELS.items()]
    )
    duration = forms.ChoiceField(
        label=_("Period"), required=False, choices=[*_SPAN_LABELS.items(), ("", _("All time"))]
    )

    def __init__(self, query: Mapping[str, Any]) -> None:
        default = {"currency": "NGN", "duration": "one month"}
        super().__init__(query if self.base_fields.keys() & query.keys() else default)

    def summary_query(self) -> SummaryQuery:
        """The filters. Call only on a valid form."""
        return SummaryQuery(**{name: value or None for name, value in self.cleaned_data.items()})


class CurrencyPeriodForm(ListFilterForm):
    """A currency and a period, for the pages and reports of statements and continuity."""

    currency = forms.ChoiceField(
        label=_("Currency"), required=False, choices=_facet_choices("currency", _("All currencies"))
    )

    @property
    def period(self) -> tuple[datetime | None, datetime | None]:
        """The start of the period and its end, which is excluded. Call only on a valid form."""
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return start_of_day(since) if since else None, end_of_day(until) if until else None
