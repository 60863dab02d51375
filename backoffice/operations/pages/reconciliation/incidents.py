"""Incidents with their evidence, and changes of accounts with break-glass, to be acknowledged with a note; and the
result of the last inspection.
"""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.models import BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.pagination import keyset_page
from backoffice.operations import permissions, policy
from backoffice.operations.errors import OperationError
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.incidents import all_incidents
from backoffice.operations.monitoring.inspection import system_health
from backoffice.operations.pages.operation.forms import reason_field


class AcknowledgeForm(forms.Form):
    """The note that acknowledges an incident."""

    note = reason_field(
        label=_("What you found"),
        help_text=_("Kept with the incident for everyone."),
        missing=_("Enter what you found. The incident is still open."),
    )


NEWEST_INCIDENTS_FIRST = ("-at", "-id")
MOST_BREAK_GLASS_SHOWN = 50


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def incident_list(request: StaffRequest) -> HttpResponse:
    """Every incident, the newest first, and the result of the last inspection."""
    page = keyset_page(all_incidents(), order=NEWEST_INCIDENTS_FIRST, cursor=request.GET.get("cursor"))
    changes = BreakGlassChange.objects.select_related("user", "acknowledged_by")
    shown = changes.order_by(F("acknowledged_at").desc(nulls_first=True), *NEWEST_INCIDENTS_FIRST)
    context = {"page": page, "health": system_health(), "break_glass": shown[:MOST_BREAK_GLASS_SHOWN]}
    return render(request, "operations/incidents.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def incident(request: StaffRequest, pk: int) -> HttpResponse:
    """One incident with its evidence, and the form to acknowledge it."""
    found = get_object_or_404(all_incidents(), pk=pk)
    form = AcknowledgeForm(request.POST or None)
    if request.method == "POST" and _acknowledged(request, form, incidents.acknowledge_incident, pk):
        return redirect("operations:incidents")
    context = {"incident": found, "form": form}
    return render(
        request, "operations/incident.html", context, status=422 if request.method == "POST" else 200
    )


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def break_glass(request: StaffRequest, pk: int) -> HttpResponse:
    """One change of an account with break-glass, and the form to acknowledge it."""
    changes = BreakGlassChange.objects.select_related("user", "acknowledged_by")
    found = get_object_or_404(changes, pk=pk)
    form = AcknowledgeForm(request.POST or None)
    if request.method == "POST" and _acknowledged(request, form, incidents.acknowledge_break_glass, pk):
        return redirect("operations:incidents")
    context = {
        "change": found,
        "roles": [str(Role(name).label) for name in found.roles if name in Role],
        "form": form,
        "is_own": found.user == request.user,
        "restriction": policy.restriction(request.user, permissions.ACKNOWLEDGE),
    }
    return render(
        request, "operations/break_glass.html", context, status=422 if request.method == "POST" else 200
    )


def _acknowledged(
    request: StaffRequest, form: AcknowledgeForm, acknowledge: Callable[..., object], pk: int
) -> bool:
    if not request.user.has_perm(permissions.ACKNOWLEDGE):
        raise PermissionDenied
    if not form.is_valid():
        return False
    try:
        acknowledge(pk, actor=request.user, note=form.cleaned_data["note"])
    except OperationError as exc:
        form.add_error(None, str(exc))
        return False
    messages.success(request, gettext("Incident acknowledged."))
    return True
