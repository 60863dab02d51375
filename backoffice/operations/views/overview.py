"""The overview: the money at a glance, what waits for this person, and what needs to be looked at."""

from datetime import UTC, datetime

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.ledger import services as ledger_services
from backoffice.ledger.books.continuity import breaks_on_pages
from backoffice.ledger.flows import flows
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.trend import balances_over_thirty_days
from backoffice.operations import permissions
from backoffice.operations.glance import Group, open_operations, standings
from backoffice.operations.health import health
from backoffice.operations.panel import takes_decisions
from payments_gateway import GatewayError


@require_safe
def overview(request: StaffRequest) -> HttpResponse:
    """What this person may see of it, from small tables alone: neither the service nor the whole mirror is read."""
    person, now = request.user, timezone.now()
    context = {"greeting": _greeting(timezone.localtime().hour), **_money(person, now), **_work(person, now)}
    return render(request, "operations/overview.html", context)


@polled
@require_safe
@permission_required("ledger.view_balance", raise_exception=True)
def balances(request: StaffRequest) -> HttpResponse:
    """The balances as the service tells them now, or the last known ones if it does not answer."""
    context: dict[str, object] = {"fresh": True}
    try:
        ledger_services.refresh_balances()
    except GatewayError:
        context["unreachable"] = True
    context["balances"] = balances_over_thirty_days(timezone.now())
    return render(request, "operations/_balances.html", context)


def _money(person: User, now: datetime) -> dict[str, object]:
    seen: dict[str, object] = {}
    if person.has_perm("ledger.view_balance"):
        seen["balances"] = balances_over_thirty_days(now)
    if person.has_perm("ledger.view_transaction"):
        seen["flows"] = flows(now.astimezone(UTC).date())
        seen["mirror"] = mirror_state()
        seen["breaks"] = breaks_on_pages()
    return seen


def _work(person: User, now: datetime) -> dict[str, object]:
    if not person.has_perm(permissions.VIEW):
        return {}
    groups = open_operations(person)
    open_now, ended_lately = standings(now)
    return {
        "decides": takes_decisions(person),
        "waiting": groups[Group.WAITING],
        "waiting_count": groups[Group.WAITING].in_all,  # in the frame of the page, too
        "attention": groups[Group.ATTENTION],
        "under_way": groups[Group.UNDER_WAY],
        "open_now": open_now,
        "ended_lately": ended_lately,
        "health": health(),
    }


def _greeting(hour: int) -> str:
    return "Good morning" if hour < 12 else "Good afternoon" if hour < 18 else "Good evening"
