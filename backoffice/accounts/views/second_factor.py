"""The second factor: giving it, setting it up, and the recovery codes."""

import segno
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts import navigation, selectors, services
from backoffice.accounts.decorators import (
    fresh_second_factor_required,
    recovery_codes_not_required,
    second_factor_not_required,
)
from backoffice.accounts.errors import EnrolmentNotAllowedError
from backoffice.accounts.forms import CodeForm, SecondFactorForm
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import AuthenticatorDevice

_PAGE_METHODS = ["GET", "HEAD", "POST"]


@sensitive_post_parameters("code")
@second_factor_not_required
@require_http_methods(_PAGE_METHODS)
def second_factor(request: StaffRequest) -> HttpResponse:
    """The second step of sign-in, and the way to renew it when an action needs a fresh one."""
    if selectors.authenticator_of(request.user) is None:
        return redirect(navigation.with_next("accounts:enrol", navigation.wanted_page(request)))
    form = SecondFactorForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        if services.confirm_second_factor(request, form.cleaned_data["code"]):
            return redirect(navigation.page_after_sign_in(request))
        form.add_error("code", _why_refused(request))
    context = {"form": form, "next": navigation.wanted_page(request), "renews": request.session.authenticator}
    return render(request, "accounts/second_factor.html", context, status=422 if form.is_bound else 200)


@sensitive_post_parameters("code")
@second_factor_not_required
@require_http_methods(_PAGE_METHODS)
def enrol(request: StaffRequest) -> HttpResponse:
    """Set up an authenticator; its first right code brings the recovery codes."""
    try:
        device = services.begin_enrolment(request)
        form = CodeForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            if services.finish_enrolment(request, form.cleaned_data["code"]):
                return _draw_codes(request)
            form.add_error("code", "This code is not right. Nothing was set up. Type the code shown now.")
    except EnrolmentNotAllowedError:
        return redirect(navigation.with_next("accounts:second_factor", request.path))
    return _enrolment_page(request, device, form)


@recovery_codes_not_required
@require_http_methods(_PAGE_METHODS)
def recovery_codes(request: StaffRequest) -> HttpResponse:
    """How many codes are left; POST draws ten new ones and shows them, this once."""
    if request.method == "POST":
        return _draw_codes(request)
    context = {"left": selectors.recovery_codes_left(request.user), "next": navigation.wanted_page(request)}
    return render(request, "accounts/recovery_codes.html", context)


@require_POST
@recovery_codes_not_required
def recovery_codes_kept(request: StaffRequest) -> HttpResponse:
    services.confirm_codes_kept(request.user)
    return redirect(navigation.page_after_sign_in(request))


@fresh_second_factor_required
def _draw_codes(request: StaffRequest) -> HttpResponse:
    codes = services.issue_recovery_codes(request.user)
    context = {"codes": codes, "next": navigation.wanted_page(request)}
    return render(request, "accounts/new_recovery_codes.html", context)


def _enrolment_page(request: StaffRequest, device: AuthenticatorDevice, form: CodeForm) -> HttpResponse:
    secret = device.secret_text()
    context = {
        "form": form,
        "next": navigation.wanted_page(request),
        "qr_code": segno.make_qr(device.provisioning_uri()).svg_data_uri(scale=5, border=3, light="#fff"),
        "secret": " ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        "replaces": request.session.authenticator,
    }
    return render(request, "accounts/enrol.html", context, status=422 if form.is_bound else 200)


def _why_refused(request: StaffRequest) -> str:
    wait = selectors.wait_before_next_code(request.user)
    seconds = max(1, round(wait.total_seconds())) if wait else 0
    return f"This code was not accepted. Each code works once. Try the next one in {seconds} s."
