"""The pages of API keys: the list, the one-time display of a new key, and the guided rotation."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.api_keys import key_list, reveal, rotation
from backoffice.api_keys.models import Rotation
from backoffice.api_keys.reveal import ApiKeyError, NotSenderOfKeyError, SecretGoneError
from backoffice.api_keys.rotation import open_rotation, progress_of
from backoffice.core.cached_reads import failed_read_text
from backoffice.core.web.forms import PageForm
from backoffice.core.web.submissions import shown_once
from backoffice.operations import permissions
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements
from payments_gateway import GatewayError

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_MINUTES = [
    ("5", _("5 minutes")),
    ("15", _("15 minutes")),
    ("60", _("1 hour")),
    ("240", _("4 hours")),
    ("1440", _("1 day")),
]


class RotationMonitoringForm(PageForm):
    """How long to monitor the new key before the old one can be invalidated."""

    minutes = forms.ChoiceField(label=_("Monitor for"), choices=_MINUTES, initial="60")

    @property
    def duration(self) -> timedelta:
        """The chosen duration. Call only on a valid form."""
        return timedelta(minutes=int(self.cleaned_data["minutes"]))


_HTTP_STATUS = {SecretGoneError: 410, NotSenderOfKeyError: 403}


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def key_list_page(request: StaffRequest) -> HttpResponse:
    """The keys of the last list, which htmx then refreshes. `?now` refreshes first, for browsers without
    JavaScript.
    """
    context = {
        "own": key_list.own_key(),
        "secrets": reveal.secrets_waiting(),
        "rotation": open_rotation(),
        **(_refreshed_list() if "now" in request.GET else _stored_list()),
    }
    return render(request, "api_keys/keys.html", context)


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def key_list_part(request: StaffRequest) -> HttpResponse:
    """The refreshed list, or the last one if the provider does not respond."""
    return render(request, "api_keys/_keys.html", {**_refreshed_list(), "own": key_list.own_key()})


@shown_once
@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("shown")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def secret_page(request: StaffRequest, pk: UUID) -> HttpResponse:
    """A key created by an operation: GET asks for confirmation, POST shows the secret once."""
    try:
        secret = reveal.check_may_reveal(pk, actor=request.user)
        form = BaseDecisionForm(
            request.POST if request.method == "POST" else None,
            request=request,
            requirements=DecisionRequirements(),
        )
        if not form.is_valid():
            context = {"operation": secret.operation, "form": form}
            return render(request, "api_keys/secret.html", context, status=422 if form.is_bound else 200)
        shown = reveal.reveal_secret(pk, actor=request.user, second_factor_at=second_factor_at(request))
    except ApiKeyError as exc:
        return _refused_page(request, pk, exc)
    return render(request, "api_keys/revealed_secret.html", {"operation": secret.operation, "shown": shown})


def _refused_page(request: StaffRequest, pk: UUID, reason: ApiKeyError) -> HttpResponse:
    context = {"operation": Operation.objects.filter(pk=pk).first(), "reason": str(reason)}
    return render(
        request, "api_keys/secret_unavailable.html", context, status=_HTTP_STATUS.get(type(reason), 409)
    )


def _stored_list() -> dict[str, object]:
    return {"keys": key_list.key_rows(), "fresh": False}


def _refreshed_list() -> dict[str, object]:
    """The refreshed list, or the last one with the reason why it could not be refreshed."""
    try:
        key_list.refresh_keys()
    except GatewayError as exc:
        return {"keys": key_list.key_rows(), "fresh": True, "unreachable": failed_read_text(exc)}
    return {"keys": key_list.key_rows(), "fresh": True}


MAX_PAST_ROTATIONS = 5


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def rotation_page(request: StaffRequest) -> HttpResponse:
    """The open rotation, or the form to start one."""
    return _rotation_page(request, RotationMonitoringForm())


_ACTIONS: dict[str, tuple[Callable[..., Rotation], "StrOrPromise"]] = {
    "start": (rotation.start_rotation, _("Rotation started. No key has changed yet.")),
    "test": (rotation.verify_new_key, ""),  # the page shows the result
    "finish": (rotation.finish_rotation, _("Rotation finished. The stored copy of the old key was deleted.")),
    "abandon": (rotation.abandon_rotation, _("Rotation abandoned. No key was changed.")),
}


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def act(request: StaffRequest, action: str, **url_kwargs: UUID) -> HttpResponse:
    """A step of the rotation that needs no input: `start`, `test`, `finish` or `abandon`."""
    service, success_message = _ACTIONS[action]
    return _run(request, partial(service, *url_kwargs.values(), actor=request.user), success_message)


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def monitor(request: StaffRequest, pk: UUID) -> HttpResponse:
    form = RotationMonitoringForm(request.POST)
    if not form.is_valid():
        return _rotation_page(request, form, status=422)
    return _run(
        request,
        lambda: rotation.start_monitoring(pk, actor=request.user, duration=form.duration),
        gettext("Monitoring started. The old key keeps working."),
    )


def _run(
    request: StaffRequest, service: Callable[[], Rotation], success_message: "StrOrPromise"
) -> HttpResponse:
    try:
        service()
    except ApiKeyError as exc:
        messages.error(request, str(exc))
    else:
        if success_message:
            messages.success(request, str(success_message))
    return redirect("api_keys:rotation")


def _rotation_page(request: StaffRequest, form: RotationMonitoringForm, *, status: int = 200) -> HttpResponse:
    current = open_rotation()
    past_rotations = Rotation.objects.select_related("started_by").filter(is_open=False)
    context = {
        "progress": progress_of(current) if current else None,
        "own": None if current else key_list.own_key(),
        "past_rotations": past_rotations[:MAX_PAST_ROTATIONS],
        "form": form,
    }
    return render(request, "api_keys/rotation.html", context, status=status)


def expiring_keys(_request: HttpRequest) -> dict[str, object]:
    """Context processor: `expiring_keys`, for the warnings on the overview, read only if a template uses it."""
    return {"expiring_keys": key_list.expiring_keys}
