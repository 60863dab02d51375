"""Overview and list of operations."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.core.pagination import keyset_page
from backoffice.ledger import selectors as ledger
from backoffice.ledger import services as ledger_services
from backoffice.operations import permissions, selectors
from backoffice.operations.forms import FilterForm
from backoffice.operations.health import health
from backoffice.operations.panel import takes_decisions
from backoffice.operations.selectors import NEWEST_FIRST, TABS
from payments_gateway import GatewayError

ON_THE_OVERVIEW = 6
SAVED_SHOWN = 8


@require_safe
def overview(request: StaffRequest) -> HttpResponse:
    """The money as last known, what waits for this person, and what nobody knows the end of."""
    person = request.user
    waiting, waiting_count = selectors.first_waiting_for(person, ON_THE_OVERVIEW)
    newest = selectors.visible_operations(person)[: 2 * ON_THE_OVERVIEW]
    context = {
        "greeting": _greeting(timezone.localtime().hour),
        "decides": takes_decisions(person),
        "balances": ledger.known_balances() if person.has_perm("ledger.view_balance") else [],
        "waiting": waiting,
        "waiting_count": waiting_count,
        "attention": selectors.operations_needing_attention(person)[:ON_THE_OVERVIEW],
        "health": health() if person.has_perm(permissions.VIEW) else None,
        "latest": [operation for operation in newest if operation not in waiting][:ON_THE_OVERVIEW],
    }
    return render(request, "operations/overview.html", context)


@polled
@require_safe
@permission_required("ledger.view_balance", raise_exception=True)
def balances(request: StaffRequest) -> HttpResponse:
    """The balances as the service tells them now, or the last known ones if it does not answer."""
    try:
        context = {"balances": ledger_services.refresh_balances(), "fresh": True}
    except GatewayError:
        context = {"balances": ledger.known_balances(), "fresh": True, "unreachable": True}
    return render(request, "operations/_balances.html", context)


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
        "saved": selectors.saved_filters(request.user)[:SAVED_SHOWN],
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


def _greeting(hour: int) -> str:
    return "Good morning" if hour < 12 else "Good afternoon" if hour < 18 else "Good evening"
