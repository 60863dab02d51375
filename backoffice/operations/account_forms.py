"""The choice of a known bank account, at the head of an account's own fields; and the name that one is saved under."""

from typing import Any

from django import forms

from backoffice.accounts.models import User
from backoffice.operations.known_accounts import KnownAccount, known_account, known_accounts


class AccountChoice(forms.Form):
    """Which of the saved and recent accounts to use, and a text to find it by where there are many."""

    prefix = "known"

    text = forms.CharField(
        required=False,
        max_length=60,
        label="Find a saved account",
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "placeholder": "Name, holder or bank"}
        ),
    )
    account = forms.CharField(
        label="Saved and recent accounts",
        widget=forms.Select,
        error_messages={"required": "Choose an account. Nothing was filled in."},
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.known = known_accounts(user, self._typed("text"))
        account: Any = self.fields["account"].widget
        groups = (("Saved", self.known.saved), ("Recent", self.known.recent))
        account.choices = [
            ("", "Choose an account, or type one below"),
            *((name, [(one.ref, one.label) for one in accounts]) for name, accounts in groups if accounts),
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to choose from, whatever is typed."""
        return not (self.known.saved or self.known.recent or self._typed("text"))

    @property
    def is_long(self) -> bool:
        """Whether the list needs a text to find something in it."""
        return self.known.has_more or bool(self._typed("text"))

    def clean_account(self) -> KnownAccount:
        found = known_account(self.user, self.cleaned_data["account"])
        if found is None:
            raise forms.ValidationError(
                "This account is not kept any more. Nothing was filled in; choose another."
            )
        return found

    def _typed(self, name: str) -> str:
        return str(self[name].value() or "").strip()[:60]


class SavedAccountForm(forms.Form):
    """What the team calls a bank account."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}), label="Name of the account"
    )
