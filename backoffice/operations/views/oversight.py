"""Incidents for people to look at, the state of what must always hold, and the metrics for machines."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required, permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_http_methods, require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from backoffice.accounts.http import StaffRequest
from backoffice.core.middleware import is_from_this_machine
from backoffice.core.pagination import keyset_page
from backoffice.operations import permissions, services
from backoffice.operations.errors import OperationError
from backoffice.operations.forms import NoteForm
from backoffice.operations.health import health
from backoffice.operations.health import incidents as all_incidents
from backoffice.operations.metrics import exposition

NEWEST_FIRST = ("-at", "-id")


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def incidents(request: StaffRequest) -> HttpResponse:
    """Every incident, the newest first, and what the last inspection found."""
    page = keyset_page(all_incidents(), order=NEWEST_FIRST, cursor=request.GET.get("cursor"))
    return render(request, "operations/incidents.html", {"page": page, "health": health()})


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def incident(request: StaffRequest, pk: int) -> HttpResponse:
    """One incident with its evidence; whoever may takes note of it here."""
    found = get_object_or_404(all_incidents(), pk=pk)
    form = NoteForm(request.POST or None)
    if request.method == "POST":
        if not request.user.has_perm(permissions.ACKNOWLEDGE):
            raise PermissionDenied
        if form.is_valid() and _took_note(request, pk, form):
            messages.success(request, "Noted. The incident stays on record with what you found.")
            return redirect("operations:incidents")
    context = {"incident": found, "form": form}
    return render(
        request, "operations/incident.html", context, status=422 if request.method == "POST" else 200
    )


def _took_note(request: StaffRequest, pk: int, form: NoteForm) -> bool:
    try:
        services.acknowledge_incident(pk, actor=request.user, note=form.cleaned_data["note"])
    except OperationError as exc:
        form.add_error(None, str(exc))
        return False
    return True


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for this machine itself and for whoever brings the configured token. Nobody signs in here."""
    if not _may_read_metrics(request):
        return HttpResponse("Forbidden\n", status=403, content_type="text/plain")
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _may_read_metrics(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    return is_from_this_machine(request)
