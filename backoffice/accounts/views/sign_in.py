"""E-mail address and password; and out again."""

from typing import cast

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts import navigation, services
from backoffice.accounts.decorators import second_factor_not_required
from backoffice.accounts.errors import LockedOutError, SignInRefusedError
from backoffice.accounts.forms import SignInForm
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.sessions import SessionStore


@sensitive_post_parameters("password")
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    form = SignInForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _page(request, form, status=422 if form.is_bound else 200)
    try:
        services.sign_in(request, cast(SessionStore, request.session), **form.cleaned_data)
    except SignInRefusedError as exc:
        form.add_error(None, str(exc))
        return _page(request, form, status=422)
    except LockedOutError as exc:
        form.add_error(None, str(exc))
        return _page(request, form, status=429)
    return redirect(navigation.with_next("accounts:second_factor", navigation.wanted_page(request)))


@require_POST
@second_factor_not_required
def sign_out(request: StaffRequest) -> HttpResponse:
    services.sign_out(request)
    return redirect("accounts:sign_in")


def _page(request: HttpRequest, form: SignInForm, *, status: int) -> HttpResponse:
    context = {"form": form, "next": navigation.wanted_page(request)}
    return render(request, "accounts/sign_in.html", context, status=status)
