"""The sign-in page and signing out."""

from typing import cast

from django import forms
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts import access, sign_in
from backoffice.accounts.access import second_factor_not_required
from backoffice.accounts.sessions import SessionStore, StaffRequest
from backoffice.accounts.sign_in import LockedOutError, SignInRefusedError


class SignInForm(forms.Form):
    """The first step of sign-in: e-mail address and password."""

    email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


@sensitive_post_parameters("password")
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_page(request: HttpRequest) -> HttpResponse:
    form = SignInForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _page(request, form, status=422 if form.is_bound else 200)
    try:
        sign_in.sign_in(request, cast(SessionStore, request.session), **form.cleaned_data)
    except SignInRefusedError as exc:
        form.add_error(None, str(exc))
        return _page(request, form, status=422)
    except LockedOutError as exc:
        form.add_error(None, str(exc))
        return _page(request, form, status=429)
    return redirect(access.url_with_next("accounts:second_factor", access.next_page(request)))


@require_POST
@second_factor_not_required
def sign_out(request: StaffRequest) -> HttpResponse:
    sign_in.sign_out(request)
    return redirect("accounts:sign_in")


def _page(request: HttpRequest, form: SignInForm, *, status: int) -> HttpResponse:
    context = {"form": form, "next": access.next_page(request)}
    return render(request, "accounts/sign_in.html", context, status=status)
