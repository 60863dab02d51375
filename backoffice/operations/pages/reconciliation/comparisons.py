"""The reconciliation page: its filters, sums by day and comparisons."""

from datetime import UTC, datetime

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import ListFilterForm, day_field
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.transactions.filters import known_facets
from backoffice.operations.models.reconciliation import ReconciliationResult
from backoffice.operations.reconciliation import selectors as kept
from backoffice.operations.reconciliation.selectors import UNMATCHED, ReconciliationFilter


def _currencies() -> list[tuple[str, str]]:
    codes = {facet.currency for facet in known_facets()} - {""}
    return [("", gettext("Any currency")), *((code, code) for code in sorted(codes))]


class ReconciliationFilterForm(ListFilterForm):
    """The filters. Days are UTC for every user, since the totals are stored by UTC day."""

    since = day_field(_("From (UTC)"))
    until = day_field(_("To (UTC)"))
    result = forms.ChoiceField(
        required=False,
        label=_("Result"),
        choices=[("", _("All results")), (UNMATCHED, _("Unmatched")), *ReconciliationResult.choices],
    )
    currency = forms.ChoiceField(required=False, label=_("Currency"), choices=_currencies)

    def chosen(self) -> ReconciliationFilter:
        """The filter to apply. Call only on a valid form."""
        values = self.cleaned_data
        return ReconciliationFilter(values["result"], values["currency"], values["since"], values["until"])


@require_safe
@permission_required(kept.REQUIRED_PERMISSIONS, raise_exception=True)
def reconciliation(request: StaffRequest) -> HttpResponse:
    """What is not matched, or what the filters in the URL choose, and the sums by day."""
    form = ReconciliationFilterForm({"result": UNMATCHED, **request.GET.dict()})
    state = kept.reconciliation_state()
    context: dict[str, object] = {"form": form, "state": state, "mirror": mirror_state()}
    if form.is_valid():
        chosen = form.chosen()
        counts = kept.result_counts(chosen)
        context |= {
            "counts": counts,
            "has_comparisons": any(number for _result, _label, number in counts),
            "days": kept.daily_totals(chosen, state.begins_at, datetime.now(UTC).date()),
            "page": keyset_page(
                chosen.comparisons(), order=kept.NEWEST_COMPARISONS_FIRST, cursor=request.GET.get("cursor")
            ),
        }
    status = 200 if form.is_valid() else 422
    return render(request, "operations/reconciliation.html", context, status=status)
