"""The guided rotation. Its page says what will happen, what has happened, and what to do next."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.integration import services
from backoffice.integration.errors import IntegrationError
from backoffice.integration.forms import WatchForm
from backoffice.integration.models import Rotation
from backoffice.integration.progress import open_rotation, progress_of
from backoffice.integration.selectors import own_key
from backoffice.operations import permissions

SHOWN_EARLIER = 5


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def rotation(request: StaffRequest) -> HttpResponse:
    """The rotation that is under way, or how to begin one."""
    return _page(request, WatchForm())


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def start(request: StaffRequest) -> HttpResponse:
    return _carry_out(
        request,
        lambda: services.start_rotation(actor=request.user),
        "The rotation has begun. Nothing has changed yet.",
    )


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def test(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Try the new key now; the page shows what came of it."""
    return _carry_out(request, lambda: services.try_new_key(pk, actor=request.user), "")


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def watch(request: StaffRequest, pk: UUID) -> HttpResponse:
    form = WatchForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    return _carry_out(
        request,
        lambda: services.begin_watch(pk, actor=request.user, lasting=form.lasting),
        "The new key is being watched. The old one goes on working.",
    )


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def finish(request: StaffRequest, pk: UUID) -> HttpResponse:
    return _carry_out(
        request,
        lambda: services.finish_rotation(pk, actor=request.user),
        "The rotation is finished. The copy of the old key is destroyed.",
    )


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def abandon(request: StaffRequest, pk: UUID) -> HttpResponse:
    return _carry_out(
        request,
        lambda: services.abandon_rotation(pk, actor=request.user),
        "The rotation is abandoned. Keys are as they were.",
    )


def _carry_out(request: StaffRequest, service: Callable[[], Rotation], done: str) -> HttpResponse:
    try:
        service()
    except IntegrationError as exc:
        messages.error(request, str(exc))
    else:
        if done:
            messages.success(request, done)
    return redirect("integration:rotation")


def _page(request: StaffRequest, form: WatchForm, *, status: int = 200) -> HttpResponse:
    under_way = open_rotation()
    earlier = Rotation.objects.select_related("started_by").filter(is_open=False)
    context = {
        "progress": progress_of(under_way) if under_way else None,
        "own": None if under_way else own_key(),
        "earlier": earlier[:SHOWN_EARLIER],
        "form": form,
    }
    return render(request, "integration/rotation.html", context, status=status)
