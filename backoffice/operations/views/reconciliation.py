"""Our operations held against the service's list."""

from datetime import UTC, datetime

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.core.pagination import keyset_page
from backoffice.ledger.mirror.state import mirror_state
from backoffice.operations import reconciliation as kept
from backoffice.operations.reconciliation_form import ReconciliationForm


@require_safe
@permission_required(kept.MAY_SEE, raise_exception=True)
def reconciliation(request: StaffRequest) -> HttpResponse:
    """The sums by day and the list, narrowed by the filters in the address; without the frame where htmx asks."""
    form = ReconciliationForm(request.GET)
    state = kept.reconciliation()
    context: dict[str, object] = {"form": form, "state": state, "mirror": mirror_state()}
    if form.is_valid():
        chosen = form.chosen()
        context |= {
            "counts": kept.counts(chosen),
            "days": kept.days(chosen, state.begins_at, datetime.now(UTC).date()),
            "page": keyset_page(
                chosen.comparisons(), order=kept.NEWEST_FIRST, cursor=request.GET.get("cursor")
            ),
        }
    only_part = request.htmx and not request.htmx.history_restore_request
    template = "operations/_reconciliation.html" if only_part else "operations/reconciliation.html"
    return render(request, template, context, status=200 if form.is_valid() else 422)
