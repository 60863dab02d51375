"""My account: second factor, recovery codes, sessions, time zone, theme and password."""

from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import messages
from django.contrib.auth.password_validation import password_validators_help_texts, validate_password
from django.forms import model_to_dict
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts import second_factor, sessions, sign_in, staff
from backoffice.accounts.access import fresh_second_factor_required, language_of
from backoffice.accounts.models import Language, Theme
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.sign_in import LockedOutError, PasswordRefusedError, confirm_password

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_REGIONS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


def _time_zones() -> list[tuple[str, Any]]:
    """All time zones, grouped by region."""
    names = sorted(available_timezones())
    groups: list[tuple[str, Any]] = [("UTC", "UTC")]
    for region in _REGIONS:
        places = [name for name in names if name.startswith(f"{region}/")]
        groups.append((region, [(name, name.partition("/")[2].replace("_", " ")) for name in places]))
    return groups


def _password_field(label: "StrOrPromise", autocomplete: str) -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, max_length=1024, strip=False, widget=widget)


class PasswordForm(forms.Form):
    """A new password, typed twice, with the current one."""

    old_password = _password_field(_("Current password"), "current-password")
    new_password = _password_field(_("New password"), "new-password")
    repeated = _password_field(_("Repeat new password"), "new-password")

    def __init__(self, *args: Any, request: StaffRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        self.fields["new_password"].help_text = " ".join(password_validators_help_texts())

    def clean_old_password(self) -> str:
        old = str(self.cleaned_data["old_password"])
        try:
            confirm_password(self.request, old)
        except (LockedOutError, PasswordRefusedError) as exc:
            raise forms.ValidationError(str(exc)) from exc
        return old

    def clean_new_password(self) -> str:
        new = str(self.cleaned_data["new_password"])
        validate_password(new, self.request.user)
        return new

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if "new_password" in values and values.get("repeated") != values["new_password"]:
            self.add_error(
                "repeated", gettext("The two new passwords differ. Enter the same password twice.")
            )
        return values


class PreferencesForm(forms.Form):
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        choices=_time_zones,
    )
    theme = forms.ChoiceField(label=_("Theme"), choices=Theme.choices)
    language = forms.ChoiceField(label=_("Language"), choices=Language.choices)


@require_safe
def my_account(request: StaffRequest) -> HttpResponse:
    return _page(request, PreferencesForm(initial=model_to_dict(request.user, PreferencesForm.base_fields)))


@require_safe
def shortcuts(request: StaffRequest) -> HttpResponse:
    """The keys that pages understand. app.js shows this page's table in a dialog."""
    return render(request, "accounts/shortcuts.html")


@require_POST
def preferences(request: StaffRequest) -> HttpResponse:
    form = PreferencesForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    staff.save_preferences(request.user, **form.cleaned_data)
    with translation.override(language_of(request)):
        messages.success(request, gettext("Preferences saved."))
    return redirect("accounts:my_account")


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@fresh_second_factor_required
def change_password_page(request: StaffRequest) -> HttpResponse:
    form = PasswordForm(request.POST if request.method == "POST" else None, request=request)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "accounts/password.html", {"form": form}, status=status)
    sign_in.change_password(request, form.cleaned_data["new_password"])
    messages.success(request, gettext("Password changed. All your other sessions have ended."))
    return redirect("accounts:my_account")


@require_POST
def end_session(request: StaffRequest, reference: str) -> HttpResponse:
    if sessions.end_session(request.user, reference):
        messages.success(request, gettext("Session ended."))
    else:
        messages.info(request, gettext("This session had already ended."))
    return redirect("accounts:my_account")


@require_POST
def end_other_sessions(request: StaffRequest) -> HttpResponse:
    ended = sessions.end_other_sessions(request)
    messages.success(
        request,
        ngettext("{count} other session ended.", "{count} other sessions ended.", ended).format(count=ended),
    )
    return redirect("accounts:my_account")


def _page(request: StaffRequest, form: PreferencesForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "authenticator": request.session.authenticator,
        "codes_left": second_factor.recovery_codes_left(request.user),
        "sessions": sessions.live_sessions_of(request.user),
        "this_session": request.session.session_key,
    }
    return render(request, "accounts/my_account.html", context, status=status)
