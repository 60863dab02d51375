"""My account: second factor, recovery codes, sessions, time zone, theme, password."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts import selectors, services
from backoffice.accounts.decorators import fresh_second_factor_required
from backoffice.accounts.forms import PasswordForm, PreferencesForm
from backoffice.accounts.http import StaffRequest


@require_safe
def me(request: StaffRequest) -> HttpResponse:
    user = request.user
    return _page(request, PreferencesForm(initial={"time_zone": user.time_zone, "theme": user.theme}))


@require_POST
def preferences(request: StaffRequest) -> HttpResponse:
    form = PreferencesForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    services.save_preferences(request.user, **form.cleaned_data)
    messages.success(request, "Your time zone and theme are saved.")
    return redirect("accounts:me")


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@fresh_second_factor_required
def password(request: StaffRequest) -> HttpResponse:
    form = PasswordForm(request.POST if request.method == "POST" else None, request=request)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "accounts/password.html", {"form": form}, status=status)
    services.change_password(request, form.cleaned_data["new_password"])
    messages.success(request, "Your password is changed. All other sessions have ended.")
    return redirect("accounts:me")


@require_POST
def end_session(request: StaffRequest, reference: str) -> HttpResponse:
    if services.end_session(request.user, reference):
        messages.success(request, "The session has ended.")
    else:
        messages.info(request, "That session had ended already.")
    return redirect("accounts:me")


@require_POST
def end_other_sessions(request: StaffRequest) -> HttpResponse:
    ended = services.end_other_sessions(request)
    messages.success(request, f"{ended} other session{'' if ended == 1 else 's'} ended.")
    return redirect("accounts:me")


def _page(request: StaffRequest, form: PreferencesForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "authenticator": request.session.authenticator,
        "codes_left": selectors.recovery_codes_left(request.user),
        "sessions": selectors.sessions_of(request.user),
        "this_session": request.session.session_key,
    }
    return render(request, "accounts/me.html", context, status=status)
