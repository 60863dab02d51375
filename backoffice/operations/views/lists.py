"""The list of operations."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.core.pagination import keyset_page
from backoffice.operations import permissions, selectors
from backoffice.operations.forms import FilterForm
from backoffice.operations.models import List
from backoffice.operations.panel import takes_decisions
from backoffice.operations.selectors import NEWEST_FIRST, TABS

SAVED_SHOWN = 8


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def operation_list(request: StaffRequest) -> HttpResponse:
    """One tab of operations, narrowed by the filters in the address; only the rows where htmx asks."""
    form = FilterForm({**request.GET.dict(), "tab": _tab(request)})
    found = selectors.visible_operations(request.user)
    found = form.chosen(request.user).apply(found) if form.is_valid() else found.none()
    context = {
        "form": form,
        "tab": form.data["tab"],
        "tabs": _tabs(request.user),
        "saved": selectors.saved_filters(request.user, List.OPERATIONS)[:SAVED_SHOWN],
        "page": keyset_page(found, order=NEWEST_FIRST, cursor=request.GET.get("cursor")),
    }
    only_rows = request.htmx and not request.htmx.history_restore_request
    template = "operations/_results.html" if only_rows else "operations/list.html"
    return render(request, template, context, status=200 if form.is_valid() else 422)


def _tabs(person: User) -> list[tuple[str, str]]:
    """Name and label of the tabs; nothing can wait for somebody who takes no decisions."""
    return [
        (name, label) for name, (label, _) in TABS.items() if name != "waiting" or takes_decisions(person)
    ]


def _tab(request: StaffRequest) -> str:
    """The tab in the address, or the first one this person has."""
    names = [name for name, _ in _tabs(request.user)]
    asked = request.GET.get("tab", "")
    return asked if asked in names else names[0]
