"""The forms of sign-in and of one's own account."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.password_validation import password_validators_help_texts, validate_password

from backoffice.accounts.errors import AccountsError
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import Theme
from backoffice.accounts.services import confirm_password

_REGIONS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


def _time_zones() -> list[tuple[str, Any]]:
    """The zones of the world by region, in the order in which people look for them."""
    names = sorted(available_timezones())
    groups: list[tuple[str, Any]] = [("UTC", "UTC")]
    for region in _REGIONS:
        places = [name for name in names if name.startswith(f"{region}/")]
        groups.append((region, [(name, name.partition("/")[2].replace("_", " ")) for name in places]))
    return groups


class SignInForm(forms.Form):
    """The first step."""

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


class OneTimeInput(forms.PasswordInput):
    """A code that is read off another screen: shown while it is typed, never sent back with a page."""

    input_type = "text"


class CodeForm(forms.Form):
    """A code of the authenticator; a recovery code does as well where the view says so."""

    code = forms.CharField(
        label="Code",
        max_length=64,
        widget=OneTimeInput(
            attrs={
                "autocomplete": "one-time-code",
                "inputmode": "numeric",
                "autofocus": True,
                "spellcheck": "false",
            }
        ),
    )


class SecondFactorForm(CodeForm):
    """The second step. A recovery code has letters, so the keyboard must offer them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.widget.attrs["inputmode"] = "text"
        field.widget.attrs["autocapitalize"] = "characters"
        field.help_text = "Six digits from your authenticator, or one of your recovery codes."


class PasswordForm(forms.Form):
    """A new password, typed twice, with the old one."""

    old_password = forms.CharField(
        label="Present password",
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new_password = forms.CharField(
        label="New password",
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    repeated = forms.CharField(
        label="The new password again",
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, request: StaffRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        self.fields["new_password"].help_text = " ".join(password_validators_help_texts())

    def clean_old_password(self) -> str:
        old = str(self.cleaned_data["old_password"])
        try:
            confirm_password(self.request, old)
        except AccountsError as exc:
            raise forms.ValidationError(str(exc)) from exc
        return old

    def clean_new_password(self) -> str:
        new = str(self.cleaned_data["new_password"])
        validate_password(new, self.request.user)
        return new

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if "new_password" in values and values.get("repeated") != values["new_password"]:
            self.add_error("repeated", "The two new passwords differ.")
        return values


class PreferencesForm(forms.Form):
    """Time zone and theme."""

    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=_time_zones,
        help_text="Every time is shown in it, with its name.",
    )
    theme = forms.ChoiceField(label="Theme", choices=Theme.choices)
