"""What the reconciliation is narrowed to, on its page and in its reports."""

from django import forms

from backoffice.core.filters import NarrowingForm
from backoffice.core.period import day_field
from backoffice.ledger.facets import known_facets
from backoffice.operations.reconciled import ReconciliationResult
from backoffice.operations.reconciliation import Narrowing


def _currencies() -> list[tuple[str, str]]:
    codes = {facet.currency for facet in known_facets()} - {""}
    return [("", "Any currency"), *((code, code) for code in sorted(codes))]


class ReconciliationForm(NarrowingForm):
    """The filters. Days are those of UTC, whoever looks, because the sums are kept so."""

    since = day_field("From, in UTC")
    until = day_field("To, in UTC")
    verdict = forms.ChoiceField(
        required=False, label="Result", choices=[("", "Any result"), *ReconciliationResult.choices]
    )
    currency = forms.ChoiceField(required=False, label="Currency", choices=_currencies)

    def chosen(self) -> Narrowing:
        """What to narrow it to. Call only on a valid form."""
        values = self.cleaned_data
        return Narrowing(values["verdict"], values["currency"], values["since"], values["until"])
