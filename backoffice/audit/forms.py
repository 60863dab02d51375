from django import forms
from django.contrib.auth import get_user_model

from backoffice.audit.actions import Action
from backoffice.core.period import PeriodForm


def _groups() -> list[tuple[str, str]]:
    return [("", "Everything"), *((group, group.replace("_", " ").capitalize()) for group in Action.groups())]


class EntryFilterForm(PeriodForm):
    """What the audit page and the audit report can be narrowed to. Every field may stay empty."""

    actor = forms.ModelChoiceField(
        get_user_model()._default_manager.order_by("full_name", "pk"),
        required=False,
        label="Person",
        empty_label="Anyone",
    )
    group = forms.ChoiceField(choices=_groups, required=False, label="About")
    about = forms.CharField(required=False, label="Reference or name", max_length=200)
    field_order = ("actor", "group", "about", "since", "until")
