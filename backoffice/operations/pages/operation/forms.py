"""Forms of decisions about one operation. Each asks for a second factor unless one is still fresh."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.accounts.second_factor import (
    confirm_second_factor,
    has_fresh_second_factor,
    second_factor_at,
)
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import OneTimeCodeInput, PageForm, reason_field
from backoffice.operations.delivery.release import AnotherPayment, ConfirmedHolder
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import TypedConfirmation
from backoffice.operations.models.holds import HolderChange, LookAlike
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.workflow.approvals import ApproverConfirmation

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class DecisionRequirements:
    """What a decision about one operation requires, besides the user's own second factor."""

    otp: bool = False
    confirmation: TypedConfirmation | None = None
    acknowledgement: str = ""  # to be confirmed with a tick before it is approved
    look_alikes: Sequence[LookAlike] = ()  # to be declared another payment before it is sent
    holder_changes: Sequence[HolderChange] = ()  # other names at the bank, to be confirmed before it is sent


class BaseDecisionForm(PageForm):
    """A decision about exactly the content seen, with a second factor at most five minutes old."""

    digest = forms.CharField(required=False)  # of the content on the page; the services refuse any other
    code = forms.CharField(
        label=_("Your authenticator code"),
        help_text=_("Required because the last one is more than five minutes old."),
        max_length=64,
        widget=OneTimeCodeInput(
            attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"}
        ),
        error_messages={"required": _("Enter the code from your authenticator app. Nothing was done.")},
    )

    def __init__(
        self, *args: Any, request: StaffRequest, requirements: DecisionRequirements, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        if not requirements.otp:
            self.fields.pop("otp", None)
        if has_fresh_second_factor(request) and not self._needs_newer_second_factor(requirements):
            del self.fields["code"]

    def _needs_newer_second_factor(self, requirements: DecisionRequirements) -> bool:
        return False

    def clean(self) -> dict[str, Any]:
        """Check the second factor last, so that a code is not used up by an otherwise invalid form."""
        values = super().clean() or self.cleaned_data
        code = values.pop("code", None)
        if not code or self.errors:
            return values
        if confirm_second_factor(self.request, code):
            del self.fields["code"]  # if the service refuses, the form is shown again and needs no other code
        else:
            self.add_error(
                "code", gettext("This code is wrong or already used. Nothing was done; enter the next code.")
            )
        return values


def otp_field(*, required: bool, help_text: "StrOrPromise") -> forms.CharField:
    """The provider's one-time code."""
    return forms.CharField(
        label=_("Provider's one-time code"),
        required=required,
        max_length=64,
        help_text=help_text,
        widget=OneTimeCodeInput(attrs={"autocomplete": "off", "inputmode": "numeric", "spellcheck": "false"}),
        error_messages={"required": _("Enter the provider's one-time code. Nothing was sent.")},
    )


_FIELD_OF = {
    Refusal.OTP_MISSING: "otp",
    Refusal.OTP_USED: "otp",
    Refusal.CONFIRMATION_WRONG: "confirmation",
}
"""The field whose value is the reason of a refusal. Any other concerns the operation, or all of them."""


def add_refusal(form: BaseDecisionForm, refused: OperationError) -> None:
    """Add why the service refused: beside the field whose value is the reason, otherwise above the form."""
    name = _FIELD_OF.get(Refusal(refused.refusal["code"]))
    form.add_error(name if name in form.fields else None, str(refused))


class ApprovalForm(BaseDecisionForm):
    """Approve, or approve and send. Asks only for what the operation's kind requires."""

    otp = otp_field(required=False, help_text=_("Only for “Approve and send”."))
    confirmation = forms.CharField(
        max_length=100,
        widget=OneTimeCodeInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": _("Type this value. Nothing was done.")},
    )
    acknowledged = forms.BooleanField(
        error_messages={"required": _("Confirm this before you approve. Nothing was done.")}
    )
    comment = forms.CharField(label=_("Comment"), required=False, max_length=500)

    def __init__(self, *args: Any, requirements: DecisionRequirements, **kwargs: Any) -> None:
        super().__init__(*args, requirements=requirements, **kwargs)
        if requirements.confirmation is None:
            del self.fields["confirmation"]
        else:
            self.fields["confirmation"].label = requirements.confirmation.label
            self.fields["confirmation"].help_text = requirements.confirmation.help_text
        if requirements.acknowledgement:
            self.fields["acknowledged"].label = requirements.acknowledgement
        else:
            del self.fields["acknowledged"]

    def clean(self) -> dict[str, Any]:
        """Make what was typed and ticked one confirmation."""
        values = super().clean()
        confirmed = ApproverConfirmation(
            values.pop("confirmation", ""), acknowledged=values.pop("acknowledged", False)
        )
        return {**values, "confirmation": confirmed}

    def clean_otp(self) -> SecretStr | None:
        otp = self.cleaned_data["otp"]
        return SecretStr(otp) if otp else None


class ApproveAndSendForm(ApprovalForm):
    """The same form, submitted by the button that also needs the one-time code."""

    def clean_otp(self) -> SecretStr:
        otp = super().clean_otp()
        if otp is None:
            raise forms.ValidationError(
                gettext("Enter the provider's one-time code. Nothing was approved and nothing was sent.")
            )
        return otp


class RejectionForm(BaseDecisionForm):
    """Reject with a reason. It is shown beside another form, so it has its own ids."""

    reason = reason_field(
        help_text=_("Shown to the preparer."),
        missing=_("Enter a reason: the preparer will see it. Nothing was done."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, auto_id="reject_%s", **kwargs)


class ReleaseForm(BaseDecisionForm):
    """Send an approved operation."""

    otp = otp_field(
        required=True,
        help_text=_("Stored encrypted while it is valid, then deleted."),
    )
    another_payment = reason_field(
        label=_("Why that transaction is a different payment"),
        help_text=_("Compare the records first. Your reason is recorded with the release."),
        missing=_("Enter why that transaction is a different payment. Nothing was sent."),
    )
    confirmed_holder = reason_field(
        label=_("How you know that the account is right"),
        help_text=_("Compare both names first. Your reason is recorded with the release."),
        missing=_("Enter how you know that the account is right. Nothing was sent."),
    )

    def __init__(self, *args: Any, requirements: DecisionRequirements, **kwargs: Any) -> None:
        super().__init__(*args, requirements=requirements, **kwargs)
        self.look_alikes = requirements.look_alikes
        self.holder_changes = requirements.holder_changes
        if not requirements.look_alikes:
            del self.fields["another_payment"]
        elif "code" in self.fields:
            self.fields["code"].help_text = gettext("Required because a similar transaction was found.")
        if not requirements.holder_changes:
            del self.fields["confirmed_holder"]
        elif "code" in self.fields:
            self.fields["code"].help_text = gettext("Required because the name at the bank differs.")

    def _needs_newer_second_factor(self, requirements: DecisionRequirements) -> bool:
        """Whether look-alikes or other names were found after the last confirmation."""
        confirmed = second_factor_at(self.request)
        found = [one.found_at for one in requirements.look_alikes] + [
            one.found_at for one in requirements.holder_changes
        ]
        return any(confirmed is None or confirmed < at for at in found)

    def clean(self) -> dict[str, Any]:
        """Make what was found, and settled, one statement: only one of the two fields is ever shown."""
        values = super().clean()
        found = [values.pop(name, None) for name in ("another_payment", "confirmed_holder")]
        return {**values, "statement": found[0] or found[1]}

    def clean_another_payment(self) -> AnotherPayment:
        is_seen = self.data.get("look_alikes") == self.look_alikes_seen
        ids = [one.transaction_id for one in self.look_alikes] if is_seen else []
        return AnotherPayment(tuple(ids), self.cleaned_data["another_payment"])

    def clean_confirmed_holder(self) -> ConfirmedHolder:
        is_seen = self.data.get("holders") == self.holders_seen
        names = [one.name for one in self.holder_changes] if is_seen else []
        return ConfirmedHolder(tuple(names), self.cleaned_data["confirmed_holder"])

    @property
    def look_alikes_seen(self) -> str:
        """A digest of exactly the transactions shown, because a form may not have thousands of fields."""
        return _digest([one.transaction_id for one in self.look_alikes])

    @property
    def holders_seen(self) -> str:
        """A digest of exactly the names shown."""
        return _digest([one.name for one in self.holder_changes])

    def clean_otp(self) -> SecretStr | None:
        otp = self.cleaned_data["otp"]
        return SecretStr(otp) if otp else None


def _digest(shown: list[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(shown)).encode()).hexdigest()
