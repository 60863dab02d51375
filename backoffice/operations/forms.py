"""What people type about operations: filters and decisions. Each kind brings the form that prepares it."""

from dataclasses import dataclass
from typing import Any

from django import forms
from pydantic import SecretStr

from backoffice.accounts.forms import OneTimeInput
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.accounts.services import confirm_second_factor, has_fresh_second_factor
from backoffice.core.filters import NarrowingForm
from backoffice.core.period import end_of, start_of
from backoffice.operations.kinds import KINDS, Confirmation
from backoffice.operations.selectors import EVERYTHING, TABS, OperationFilter
from backoffice.operations.states import Status
from payments_gateway.money import CURRENCIES


class FilterForm(NarrowingForm):
    """The filters of the list of operations; a report of operations reads the same names.

    Browsers send the first choice of a list where nothing was chosen: in each it is the one that leaves nothing out.
    """

    not_narrowing = frozenset({"tab"})

    tab = forms.ChoiceField(
        required=False,
        label="Which",
        choices=[(name, TABS[name][0]) for name in sorted(TABS, key=lambda name: name != EVERYTHING)],
    )
    text = forms.CharField(
        required=False,
        label="Search",
        max_length=200,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "Reference, name or bank"}),
    )
    kind = forms.ChoiceField(
        required=False, choices=[("", "All kinds"), *((kind.name, kind.label) for kind in KINDS.values())]
    )
    status = forms.ChoiceField(required=False, choices=[("", "Any status"), *Status.choices])
    currency = forms.ChoiceField(
        required=False, choices=[("", "Any currency"), *((code, code) for code in CURRENCIES)]
    )
    mine = forms.BooleanField(required=False, label="Prepared by me")
    beneficiary_of = forms.CharField(
        required=False, label="Paid to the same as", max_length=12, widget=forms.HiddenInput
    )

    def chosen(self, user: User) -> OperationFilter:
        """What to narrow the list to. Call only on a valid form."""
        values = self.cleaned_data
        return OperationFilter(
            within=TABS[values["tab"] or EVERYTHING][1](user),
            kind=values["kind"],
            status=values["status"],
            currency=values["currency"],
            maker=user if values["mine"] else None,
            since=start_of(values["since"]) if values["since"] else None,
            until=end_of(values["until"]) if values["until"] else None,
            text=values["text"],
            beneficiary_of=values["beneficiary_of"],
        )


@dataclass(frozen=True)
class Wants:
    """What a decision about one operation asks for, beside the person's own second factor."""

    token: bool = False
    confirmation: Confirmation | None = None


class SignedForm(forms.Form):
    """Something that a person does to exactly the content seen, with a second factor at most five minutes old."""

    digest = forms.CharField(required=False)  # of the content on the page; the service refuses any other
    code = forms.CharField(
        label="Your authenticator code",
        help_text="Asked for again because the last one is more than five minutes old.",
        max_length=64,
        widget=OneTimeInput(
            attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"}
        ),
        error_messages={"required": "Enter the code that your authenticator shows. Nothing was done."},
    )

    def __init__(self, *args: Any, request: StaffRequest, wants: Wants, **kwargs: Any) -> None:
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


def token_field(*, required: bool, help_text: str) -> forms.CharField:
    """The one-time token that the service asks for."""
    return forms.CharField(
        label="The service's token",
        required=required,
        max_length=64,
        help_text=help_text,
        widget=OneTimeInput(attrs={"autocomplete": "off", "inputmode": "numeric", "spellcheck": "false"}),
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


class DecisionForm(SignedForm):
    """To countersign, and to send in the same step. Asks for what the operation's kind wants and for nothing else."""

    token = token_field(required=False, help_text="Only for “Approve and send”.")
    confirmation = forms.CharField(
        max_length=100, widget=OneTimeInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )
    comment = forms.CharField(required=False, max_length=500)

    def __init__(self, *args: Any, wants: Wants, **kwargs: Any) -> None:
        super().__init__(*args, wants=wants, **kwargs)
        if wants.confirmation is None:
            del self.fields["confirmation"]
        else:
            self.fields["confirmation"].label = wants.confirmation.label
            self.fields["confirmation"].help_text = wants.confirmation.help_text

    def clean_token(self) -> SecretStr | None:
        token = self.cleaned_data["token"]
        return SecretStr(token) if token else None


class ApproveAndSendForm(DecisionForm):
    """The same form, sent by the button that needs the token as well."""

    def clean_token(self) -> SecretStr:
        token = super().clean_token()
        if token is None:
            raise forms.ValidationError(
                "Enter the service's one-time token. Nothing was approved and nothing was sent."
            )
        return token


class RejectionForm(SignedForm):
    """To close a pending operation with a reason. Stands beside another form, so its ids are its own."""

    reason = reason_field(
        help_text="The person who prepared it reads this.",
        missing="Say why: the person who prepared it will read the reason. Nothing was done.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, auto_id="reject_%s", **kwargs)


class ReleaseForm(SignedForm):
    """To send an approved operation."""

    token = token_field(
        required=True,
        help_text="It waits encrypted for the sending, at most 90 seconds, and is then destroyed.",
    )

    def clean_token(self) -> SecretStr | None:
        token = self.cleaned_data["token"]
        return SecretStr(token) if token else None


class _ManyForm(SignedForm):
    """A decision about several operations at once; each digest comes with its row, so there is none for all."""

    def __init__(self, *args: Any, request: StaffRequest) -> None:
        super().__init__(*args, request=request, wants=Wants())
        del self.fields["digest"]


class ApproveManyForm(_ManyForm):
    """To countersign several."""

    comment = forms.CharField(required=False, max_length=500, help_text="The same for each of them.")
    field_order = ("comment", "code")


class RejectManyForm(_ManyForm):
    """To reject several for one reason."""

    reason = reason_field(
        help_text="The same for each of them. The people who prepared them read it.",
        missing="Say why: the people who prepared them will read the reason. Nothing was done.",
    )
    field_order = ("reason", "code")


class PauseForm(forms.Form):
    """Why all sending stops."""

    reason = reason_field(
        label="Why sending stops",
        help_text="Everybody who works here reads it, at the top of every page.",
        missing="Say why. Sending goes on.",
        max_length=300,
    )


class NoteForm(forms.Form):
    """What somebody found out about an incident."""

    note = reason_field(
        label="What you found",
        help_text="It stays with the incident, and others rely on it.",
        missing="Say what you found. The incident is still open.",
    )


class SavedFilterForm(forms.Form):
    """The name of a saved filter, and who sees it."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}), label="Name of the filter"
    )
    is_shared = forms.BooleanField(required=False, label="Show it to everybody")


class SearchForm(forms.Form):
    """What to look for everywhere."""

    q = forms.CharField(
        min_length=2,
        max_length=200,
        label="Search for",
        widget=forms.TextInput(
            attrs={
                "type": "search",
                "placeholder": "Reference, name, account number or transaction",
                "autocomplete": "off",
            }
        ),
        error_messages={
            "required": "Type what to look for.",
            "min_length": "Type at least two characters. Nothing was searched.",
        },
    )
