"""The list of API keys, and the one look at a new one."""

from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.services import second_factor_at
from backoffice.integration import selectors, services
from backoffice.integration.errors import IntegrationError, NothingToShowError, NotYoursError
from backoffice.integration.progress import open_rotation
from backoffice.operations import permissions
from backoffice.operations.forms import SignedForm, Wants
from backoffice.operations.models import Operation
from payments_gateway import GatewayError

_STATUS = {NothingToShowError: 410, NotYoursError: 403}


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def keys(request: StaffRequest) -> HttpResponse:
    """The keys as last known, and what becomes of them. With `?now` the service is asked first, for want of scripts."""
    context = {
        "own": selectors.own_key(),
        "secrets": selectors.secrets_waiting(),
        "rotation": open_rotation(),
        **(_asked() if "now" in request.GET else _known()),
    }
    return render(request, "integration/keys.html", context)


@polled
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def listed(request: StaffRequest) -> HttpResponse:
    """The keys as the service lists them now, or the last known ones if it does not answer."""
    return render(request, "integration/_keys.html", {**_asked(), "own": selectors.own_key()})


@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("shown")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def secret(request: StaffRequest, pk: UUID) -> HttpResponse:
    """What an operation made: the question first, and once, by POST, the secret itself."""
    try:
        kept = services.check_may_be_shown(pk, actor=request.user)
        form = SignedForm(request.POST if request.method == "POST" else None, request=request, wants=Wants())
        if not form.is_valid():
            context = {"operation": kept.operation, "form": form}
            return render(request, "integration/secret.html", context, status=422 if form.is_bound else 200)
        shown = services.reveal_secret(pk, actor=request.user, second_factor_at=second_factor_at(request))
    except IntegrationError as exc:
        return _not_shown(request, pk, exc)
    return render(request, "integration/shown.html", {"operation": kept.operation, "shown": shown})


def _not_shown(request: StaffRequest, pk: UUID, reason: IntegrationError) -> HttpResponse:
    context = {"operation": Operation.objects.filter(pk=pk).first(), "reason": str(reason)}
    return render(request, "integration/not_shown.html", context, status=_STATUS.get(type(reason), 409))


def _known() -> dict[str, object]:
    return {"keys": selectors.key_rows(), "fresh": False}


def _asked() -> dict[str, object]:
    """The list with what the service says now; the last known one, and that it is, where it says nothing."""
    try:
        services.refresh_keys()
    except GatewayError as exc:
        return {"keys": selectors.key_rows(), "fresh": True, "unreachable": str(exc)}
    return {"keys": selectors.key_rows(), "fresh": True}
