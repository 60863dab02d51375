"""Forms of decisions about one operation. Each asks for a second factor unless one is at most five minutes old."""

from dataclasses import dataclass
from typing import Any

from django import forms
from pydantic import SecretStr

from backoffice.accounts.second_factor import confirm_second_factor, has_fresh_second_factor
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import OneTimeCodeInput
from backoffice.operations.kinds.base import TypedConfirmation


@dataclass(frozen=True)
class DecisionRequirements:
    """What a decision about one operation asks for, beside the person's own second factor."""

    token: bool = False
    confirmation: TypedConfirmation | None = None


class BaseDecisionForm(forms.Form):
    """Something that a person does to exactly the content seen, with a second factor at most five minutes old."""

    digest = forms.CharField(required=False)  # of the content on the page; the service refuses any other
    code = forms.CharField(
        label="Your authenticator code",
        help_text="Asked for again because the last one is more than five minutes old.",
        max_length=64,
        widget=OneTimeCodeInput(
            attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"}
        ),
        error_messages={"required": "Enter the code that your authenticator shows. Nothing was done."},
    )

    def __init__(self, *args: Any, request: StaffRequest, wants: DecisionRequirements, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        if not wants.token:
            self.fields.pop("token", None)
        if has_fresh_second_factor(request):
            del self.fields["code"]

    def clean(self) -> dict[str, Any]:
        """Use up the code only when everything else is in order."""
        values = super().clean() or self.cleaned_data
        code = values.pop("code", None)
        if code and not self.errors and not confirm_second_factor(self.request, code):
            self.add_error(
                "code", "This code is wrong or was used before. Nothing was done; enter the next one."
            )
        return values


def otp_field(*, required: bool, help_text: str) -> forms.CharField:
    """The one-time token that the service asks for."""
    return forms.CharField(
        label="The service's token",
        required=required,
        max_length=64,
        help_text=help_text,
        widget=OneTimeCodeInput(attrs={"autocomplete": "off", "inputmode": "numeric", "spellcheck": "false"}),
        error_messages={"required": "Enter the service's one-time token. Nothing was sent."},
    )


def reason_field(
    *, help_text: str, missing: str, label: str | None = None, max_length: int = 500
) -> forms.CharField:
    """What somebody must say in their own words; `missing` is what is said to whoever says nothing."""
    return forms.CharField(
        label=label,
        max_length=max_length,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": missing},
    )


class ApprovalForm(BaseDecisionForm):
    """To countersign, and to send in the same step. Asks for what the operation's kind wants and for nothing else."""

    token = otp_field(required=False, help_text="Only for “Approve and send”.")
    confirmation = forms.CharField(
        max_length=100, widget=OneTimeCodeInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )
    comment = forms.CharField(required=False, max_length=500)

    def __init__(self, *args: Any, wants: DecisionRequirements, **kwargs: Any) -> None:
        super().__init__(*args, wants=wants, **kwargs)
        if wants.confirmation is None:
            del self.fields["confirmation"]
        else:
            self.fields["confirmation"].label = wants.confirmation.label
            self.fields["confirmation"].help_text = wants.confirmation.help_text

    def clean_token(self) -> SecretStr | None:
        token = self.cleaned_data["token"]
        return SecretStr(token) if token else None


class ApproveAndSendForm(ApprovalForm):
    """The same form, sent by the button that needs the token as well."""

    def clean_token(self) -> SecretStr:
        token = super().clean_token()
        if token is None:
            raise forms.ValidationError(
                "Enter the service's one-time token. Nothing was approved and nothing was sent."
            )
        return token


class RejectionForm(BaseDecisionForm):
    """To close a pending operation with a reason. Stands beside another form, so its ids are its own."""

    reason = reason_field(
        help_text="The person who prepared it reads this.",
        missing="Say why: the person who prepared it will read the reason. Nothing was done.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, auto_id="reject_%s", **kwargs)


class ReleaseForm(BaseDecisionForm):
    """To send an approved operation."""

    token = otp_field(
        required=True,
        help_text="It waits encrypted for the sending, at most 90 seconds, and is then destroyed.",
    )

    def clean_token(self) -> SecretStr | None:
        token = self.cleaned_data["token"]
        return SecretStr(token) if token else None
