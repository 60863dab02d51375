from typing import Any

from django import forms
from django.contrib.auth import get_user_model

from backoffice.audit.actions import Action


class EntryFilterForm(forms.Form):
    """What the audit page and the audit report can be narrowed to. Every field may stay empty."""

    actor = forms.ModelChoiceField(queryset=None, required=False, label="Person", empty_label="Anyone")
    group = forms.ChoiceField(required=False, label="About")
    about = forms.CharField(required=False, label="Reference or name", max_length=200)
    since = forms.DateField(required=False, label="From", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["actor"].queryset = get_user_model()._default_manager.order_by("full_name", "pk")
        self.fields["group"].choices = [("", "Everything"), *_group_choices()]

    def clean(self) -> dict[str, Any]:
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since > until:
            self.add_error("until", "This day is before the first one. Choose the same day or a later one.")
        return self.cleaned_data


def _group_choices() -> list[tuple[str, str]]:
    return [(group, group.replace("_", " ").capitalize()) for group in Action.groups()]
