"""The pages of sign-in: set-up link, password, second factor, enrolment and recovery codes; and signing out."""

from typing import TYPE_CHECKING, Any, cast

import segno
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.password_validation import password_validators_help_texts, validate_password
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts import access, second_factor, sign_in
from backoffice.accounts.access import (
    fresh_second_factor_required,
    recovery_codes_not_required,
    second_factor_not_required,
)
from backoffice.accounts.models import AuthenticatorDevice, SetupLink, User
from backoffice.accounts.second_factor import EnrolmentNeedsLinkError, EnrolmentNotAllowedError
from backoffice.accounts.sessions import SessionStore, StaffRequest
from backoffice.accounts.sign_in import (
    LockedOutError,
    PasswordRefusedError,
    SetupLinkRefusedError,
    SignInBusyError,
    SignInRefusedError,
    StartCodeRefusedError,
    TooManyLinksError,
)
from backoffice.core.web.forms import OneTimeCodeInput, PageForm
from backoffice.core.web.submissions import shown_once

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class SignInForm(PageForm):
    """The first step of sign-in: email address and password."""

    email = forms.EmailField(
        label=_("Email address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        error_messages={"required": _("Enter your password.")},
    )

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


_PAGE_METHODS = ["GET", "HEAD", "POST"]


@sensitive_post_parameters("password")
@login_not_required
@require_http_methods(_PAGE_METHODS)
def sign_in_page(request: HttpRequest) -> HttpResponse:
    form = SignInForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _sign_in_page(request, form, status=422 if form.is_bound else 200)
    try:
        sign_in.sign_in(request, cast(SessionStore, request.session), **form.cleaned_data)
    except SignInRefusedError as exc:
        form.add_error(None, str(exc))
        return _sign_in_page(request, form, status=422)
    except (LockedOutError, SignInBusyError) as exc:
        form.add_error(None, str(exc))
        return _sign_in_page(request, form, status=429)
    return redirect(access.url_with_next("accounts:second_factor", access.next_page(request)))


@require_POST
@second_factor_not_required
def sign_out(request: StaffRequest) -> HttpResponse:
    """End the session, and leave nothing of it in the browser: neither pages nor what scripts stored.

    The cookie of the session is deleted by itself: "cookies" would delete those of the whole domain.
    """
    sign_in.sign_out(request)
    response = redirect("accounts:sign_in")
    response["Clear-Site-Data"] = '"cache", "storage"'
    return response


def _sign_in_page(request: HttpRequest, form: SignInForm, *, status: int) -> HttpResponse:
    context = {"form": form, "next": access.next_page(request)}
    return render(request, "accounts/sign_in.html", context, status=status)


def _password_field(label: "StrOrPromise", autocomplete: str) -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    messages = {"required": _("Enter the password.")}
    return forms.CharField(label=label, max_length=1024, strip=False, widget=widget, error_messages=messages)


class NewPasswordForm(PageForm):
    """A new password, typed twice."""

    new_password = _password_field(_("New password"), "new-password")
    repeated = _password_field(_("Repeat new password"), "new-password")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        # The rules between these two are part of what “easily guessed” means.
        length, *_included, guessable = password_validators_help_texts()
        self.fields["new_password"].help_text = f"{length} {guessable}"

    def clean_new_password(self) -> str:
        new = str(self.cleaned_data["new_password"])
        validate_password(new, self.user)
        return new

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if "new_password" in values and values.get("repeated") != values["new_password"]:
            self.add_error(
                "repeated", gettext("The two new passwords differ. Enter the same password twice.")
            )
        return values


class FirstPasswordForm(NewPasswordForm):
    """The first password, with the start code if the link needs one."""

    start_code = forms.CharField(
        label=_("Start code"),
        max_length=80,  # with spaces and hyphens as they were dictated
        help_text=_(
            "Usually 12 letters and digits. Spaces, hyphens and case do not matter. You get it from a different person "
            "than the link."
        ),
        # Shown again after an error, unlike other codes: it works only with the link.
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "characters", "spellcheck": "false"}
        ),
        error_messages={"required": _("Enter the start code. Nothing was saved.")},
    )
    field_order = ("start_code", "new_password", "repeated")

    def __init__(self, *args: Any, link: SetupLink, **kwargs: Any) -> None:
        super().__init__(*args, user=link.user, **kwargs)
        if not link.code_digest:
            del self.fields["start_code"]


class CurrentPasswordForm(PageForm):
    """The current password, for every change of how a person signs in: a screen left open does not suffice."""

    old_password = _password_field(_("Current password"), "current-password")

    def __init__(self, *args: Any, request: StaffRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        old = str(self.cleaned_data["old_password"])
        try:
            sign_in.confirm_password(self.request, old)
        except (LockedOutError, PasswordRefusedError, SignInBusyError) as exc:
            raise forms.ValidationError(str(exc)) from exc
        return old


class PasswordForm(CurrentPasswordForm, NewPasswordForm):
    """A new password, with the current one."""

    field_order = ("old_password", "new_password", "repeated")

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if values.get("new_password") and values["new_password"] == values.get("old_password"):
            self.add_error(
                "new_password",
                gettext("This is your current password. Nothing was changed. Choose another one."),
            )
        return values


@sensitive_post_parameters()
@require_http_methods(_PAGE_METHODS)
@fresh_second_factor_required
def change_password_page(request: StaffRequest) -> HttpResponse:
    sent = request.POST if request.method == "POST" else None
    form = PasswordForm(sent, request=request, user=request.user)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "accounts/password.html", {"form": form}, status=status)
    sign_in.change_password(request, form.cleaned_data["new_password"])
    messages.success(request, gettext("Password changed. All your other sessions have ended."))
    return redirect("accounts:my_account")


@shown_once
@sensitive_post_parameters("new_password", "repeated", "start_code")
@login_not_required
@require_http_methods(_PAGE_METHODS)
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """Choose a password by a one-time link; then sign-in continues. For an invalid link no further reason is shown.

    The address is a credential, so the requests for styles and scripts of the page must not name it.
    """
    response = _set_up_page(request, token)
    response.headers["Referrer-Policy"] = "strict-origin"  # a form of the page needs the origin
    return response


def _set_up_page(request: HttpRequest, token: str) -> HttpResponse:
    try:
        link = sign_in.open_setup_link(request, token)
        form = FirstPasswordForm(request.POST if request.method == "POST" else None, link=link)
        if form.is_valid() and _sets_password(request, token, form):
            return redirect("accounts:second_factor")
    except (SetupLinkRefusedError, TooManyLinksError) as exc:
        status = 429 if isinstance(exc, TooManyLinksError) else 404
        return render(request, "accounts/set_up.html", {"refusal": str(exc)}, status=status)
    context = {"form": form, "person": link.user}
    return render(request, "accounts/set_up.html", context, status=422 if form.is_bound else 200)


def _sets_password(request: HttpRequest, token: str, form: FirstPasswordForm) -> bool:
    """Use the link; False if its start code is wrong, with an error on the form."""
    try:
        sign_in.use_setup_link(
            request,
            cast(SessionStore, request.session),
            token=token,
            password=form.cleaned_data["new_password"],
            start_code=form.cleaned_data.get("start_code", ""),
        )
    except StartCodeRefusedError as exc:
        form.add_error("start_code", str(exc))
        return False
    return True


class AuthenticatorCodeForm(PageForm):
    """A code of the authenticator; a recovery code too where the view allows it."""

    code = forms.CharField(
        label=_("Code"),
        max_length=64,
        widget=OneTimeCodeInput(
            attrs={
                "autocomplete": "one-time-code",
                "inputmode": "numeric",
                "autofocus": True,
                "spellcheck": "false",
            }
        ),
    )


class NewAuthenticatorForm(CurrentPasswordForm, AuthenticatorCodeForm):
    """A code of the authenticator that replaces another one, with the current password."""

    field_order = ("old_password", "code")


class SecondFactorForm(AuthenticatorCodeForm):
    """The second step of sign-in. A recovery code has letters, so the field must not use a numeric keyboard."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.widget.attrs["inputmode"] = "text"
        field.widget.attrs["autocapitalize"] = "characters"
        field.help_text = gettext("Six digits from your authenticator, or a recovery code.")


@sensitive_post_parameters("code")
@second_factor_not_required
@require_http_methods(_PAGE_METHODS)
def second_factor_page(request: StaffRequest) -> HttpResponse:
    """The second step of sign-in, also used when an action needs a fresh second factor."""
    if second_factor.authenticator_of(request.user) is None:
        return redirect(access.url_with_next("accounts:enrol", access.next_page(request)))
    form = SecondFactorForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        if second_factor.confirm_second_factor(request, form.cleaned_data["code"]):
            return redirect(access.page_after_sign_in(request))
        form.add_error("code", _refusal_text(request))
    context = {"form": form, "next": access.next_page(request), "renews": request.session.authenticator}
    return render(request, "accounts/second_factor.html", context, status=422 if form.is_bound else 200)


@shown_once
@sensitive_post_parameters("code", "old_password")
@second_factor_not_required
@require_http_methods(_PAGE_METHODS)
def enrol(request: StaffRequest) -> HttpResponse:
    """Set up an authenticator; its first correct code leads to the recovery codes."""
    try:
        device = second_factor.begin_enrolment(request)
        form = _enrolment_form(request)
        if form.is_valid():
            if second_factor.finish_enrolment(request, form.cleaned_data["code"]):
                return _issue_codes(request)
            form.add_error(
                "code", gettext("Wrong code. Nothing was set up. Enter the code that the app shows now.")
            )
    except EnrolmentNeedsLinkError:
        return render(request, "accounts/enrolment_needs_link.html", status=403)
    except EnrolmentNotAllowedError:
        return redirect(access.url_with_next("accounts:second_factor", request.path))
    return _enrolment_page(request, device, form)


@shown_once
@sensitive_post_parameters("old_password")
@recovery_codes_not_required
@require_http_methods(_PAGE_METHODS)
def recovery_codes(request: StaffRequest) -> HttpResponse:
    """The number of codes left; POST generates ten new ones and shows them once."""
    if request.method == "POST":
        return _replace_codes(request)
    return _codes_page(request, CurrentPasswordForm(request=request))


def _codes_page(request: StaffRequest, form: CurrentPasswordForm) -> HttpResponse:
    left = second_factor.recovery_codes_left(request.user)
    context = {"form": form, "left": left, "next": access.next_page(request)}
    return render(request, "accounts/recovery_codes.html", context, status=422 if form.is_bound else 200)


@fresh_second_factor_required
def _replace_codes(request: StaffRequest) -> HttpResponse:
    form = CurrentPasswordForm(request.POST, request=request)
    return _issue_codes(request) if form.is_valid() else _codes_page(request, form)


@require_POST
@recovery_codes_not_required
def recovery_codes_stored(request: StaffRequest) -> HttpResponse:
    second_factor.confirm_recovery_codes_stored(request.user)
    return redirect(access.page_after_sign_in(request))


@fresh_second_factor_required
def _issue_codes(request: StaffRequest) -> HttpResponse:
    had_codes = second_factor.recovery_codes_left(request.user) > 0
    codes = second_factor.issue_recovery_codes(request.user)
    context = {"codes": codes, "had_codes": had_codes, "next": access.next_page(request)}
    return render(request, "accounts/new_recovery_codes.html", context)


def _enrolment_form(request: StaffRequest) -> AuthenticatorCodeForm:
    """With the current password, too, if another authenticator is replaced."""
    sent = request.POST if request.method == "POST" else None
    replaces = request.session.authenticator is not None
    return NewAuthenticatorForm(sent, request=request) if replaces else AuthenticatorCodeForm(sent)


def _enrolment_page(
    request: StaffRequest, device: AuthenticatorDevice, form: AuthenticatorCodeForm
) -> HttpResponse:
    secret = device.secret_text()
    context = {
        "form": form,
        "next": access.next_page(request),
        "qr_code": segno.make_qr(device.provisioning_uri()).svg_data_uri(scale=5, border=3, light="#fff"),
        "secret": " ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        "replaces": request.session.authenticator,
    }
    return render(request, "accounts/enrol.html", context, status=422 if form.is_bound else 200)


def _refusal_text(request: StaffRequest) -> str:
    wait = second_factor.wait_before_next_code(request.user)
    seconds = max(1, round(wait.total_seconds())) if wait else 0
    sentence = ngettext(
        "Code not accepted: it is wrong or already used. Enter the next one in {count} second.",
        "Code not accepted: it is wrong or already used. Enter the next one in {count} seconds.",
        seconds,
    )
    return sentence.format(count=seconds)
