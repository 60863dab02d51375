"""The forms of what the approval policies require of recipients, and of their lists of recipients; with the lists, the
zone in which the hours of the policies are.
"""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from backoffice.core.web.formatting import format_amount
from backoffice.core.web.forms import PageForm, time_zone_choices
from backoffice.governance.policy_comparison import recipients_in_words
from backoffice.governance.policy_forms import AmountField
from backoffice.policies.document import (
    Ceiling,
    Cooling,
    PolicyDocument,
    RecipientList,
    RecipientRequirements,
)
from backoffice.policies.sentences import kind_name
from backoffice.recipients.keys import canonical_key
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import BY_NAME, newest_versions
from backoffice.settings_values import KINDS_THAT_PAY, MOST_COOLING_HOURS
from payments_gateway import CURRENCIES
from payments_gateway.money import AmountError, check_quantity

OFFERED = 200
"""Recipients of the register that the page offers by name at most; the others are found by what is typed."""

_REGISTERED = {"list": "registered", "autocomplete": "off", "spellcheck": "false"}


class RequirementsForm(PageForm):
    """The kinds that pay approved recipients only, and the cooling of new and changed ones."""

    approved_only = forms.MultipleChoiceField(
        label=_("Pay approved recipients only"),
        required=False,
        help_text=_("Payments of these kinds to anybody else are refused."),
        widget=forms.CheckboxSelectMultiple,
    )
    hours = forms.IntegerField(
        label=_("Cooling-off period in hours"),
        required=False,
        min_value=1,
        max_value=MOST_COOLING_HOURS,
        help_text=_(
            "An approved recipient that is new or changed cannot be paid before the end of this period. Empty: no "
            "cooling-off period."
        ),
    )
    extra_approval = forms.BooleanField(
        label=_("Allow one more approval instead of cooling-off"), required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.requirements: RecipientRequirements | None = None
        kinds: Any = self.fields["approved_only"]
        kinds.choices = [(kind, kind_name(kind)) for kind in KINDS_THAT_PAY]
        for code in CURRENCIES:
            label = gettext("Allowed during cooling-off, {currency}").format(currency=code)
            self.fields[f"ceiling_{code}"] = AmountField(label=label, required=False, max_length=40)

    @property
    def ceiling_fields(self) -> list[forms.BoundField]:
        return [self[f"ceiling_{code}"] for code in CURRENCIES]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        ceilings = [one for code in CURRENCIES if (one := self._ceiling(code)) is not None]
        hours, extra = values.get("hours"), values.get("extra_approval", False)
        if not hours and not self.errors and (ceilings or extra):
            self.add_error("hours", gettext("Enter the hours, or clear the other cooling-off fields."))
        if not self.errors:
            cooling = Cooling(hours=hours, ceilings=tuple(ceilings), extra_approval=extra) if hours else None
            self.requirements = RecipientRequirements(approved_only=values["approved_only"], cooling=cooling)
        return values

    def _ceiling(self, code: str) -> Ceiling | None:
        name = f"ceiling_{code}"
        amount = self.cleaned_data.get(name)
        if amount is None:
            return None
        try:
            check_quantity(amount, code)
        except AmountError as exc:
            self.add_error(name, str(exc))
            return None
        return Ceiling(currency=code, amount=amount)


def requirements_initial(required: RecipientRequirements) -> dict[str, Any]:
    """The values of the form."""
    cooling = required.cooling
    ceilings = cooling.ceilings if cooling else ()
    return {
        "approved_only": list(required.approved_only),
        "hours": cooling.hours if cooling else None,
        "extra_approval": bool(cooling and cooling.extra_approval),
        **{f"ceiling_{one.currency}": format_amount(one.amount, one.currency) for one in ceilings},
    }


@dataclass(frozen=True)
class ListFields:
    """One list of the draft, and its fields: its name as shown, who leaves and joins it, and whether it is deleted."""

    name: str
    count: int
    was: forms.BoundField
    leave: forms.BoundField
    join: forms.BoundField
    drop: forms.BoundField


class ListsForm(PageForm):
    """The time zone; of each list, who is removed from it and added to it; and a new list."""

    time_zone = forms.ChoiceField(
        label=_("Time zone for hours"),
        choices=time_zone_choices,
        widget=forms.Select(attrs={"translate": "no"}),
    )
    new_name = forms.CharField(label=_("Name of the list"), required=False, max_length=60)

    def __init__(self, *args: Any, document: PolicyDocument, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.document = document
        self.lists: tuple[RecipientList, ...] = ()
        self._set_zone(document.time_zone)
        texts = recipients_in_words({key for each in document.lists for key in each.keys})
        for number, each in enumerate(document.lists):
            self.fields[f"was{number}"] = forms.CharField(initial=each.name, widget=forms.HiddenInput)
            self.fields[f"leave{number}"] = forms.MultipleChoiceField(
                label=_("Select who is removed"),
                required=False,
                choices=[(key, texts[key]) for key in each.keys],
                widget=forms.CheckboxSelectMultiple,
            )
            self.fields[f"join{number}"] = _added_field()
            self.fields[f"drop{number}"] = forms.BooleanField(
                label=gettext("Delete the list {name}").format(name=each.name), required=False
            )
        self.fields["new_join"] = _added_field()

    @property
    def of_lists(self) -> list[ListFields]:
        return [
            ListFields(
                each.name,
                len(each.keys),
                *(self[f"{name}{number}"] for name in ("was", "leave", "join", "drop")),
            )
            for number, each in enumerate(self.document.lists)
        ]

    @property
    def offered(self) -> list[RecipientVersion]:
        """Approved recipients to choose from, by name."""
        return list(_approved().order_by(*BY_NAME)[:OFFERED])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        before = self.document.lists
        if any(values.get(f"was{number}") != each.name for number, each in enumerate(before)):
            self.add_error(None, gettext("The lists were changed in another window. Nothing was saved."))
        kept = [self._changed(number, each) for number, each in enumerate(before)]
        new = self._new()
        if not self.errors:
            self.lists = tuple(filter(None, (*kept, new)))
        return values

    def _changed(self, number: int, before: RecipientList) -> RecipientList | None:
        """The list as it is afterwards; None if it is deleted."""
        values = self.cleaned_data
        if values.get(f"drop{number}"):
            naming = [n for n, rule in enumerate(self.document.rules, 1) if rule.when.on_list == before.name]
            if naming:
                text = gettext("Rule {number} names this list. Change or remove the rule first.")
                self.add_error(f"drop{number}", text.format(number=naming[0]))
            return None
        removed = set(values.get(f"leave{number}") or ())
        keys = [key for key in before.keys if key not in removed]
        return self._list(before.name, [*keys, *self._typed(f"join{number}")], f"join{number}")

    def _new(self) -> RecipientList | None:
        name, keys = self.cleaned_data.get("new_name") or "", self._typed("new_join")
        if not name:
            if keys:
                self.add_error("new_name", gettext("Enter the name of the list."))
            return None
        if name.casefold() in {each.name.casefold() for each in self.document.lists}:
            self.add_error(
                "new_name", gettext("A list with this name already exists. Add the recipient to it.")
            )
        if not keys and "new_join" not in self.errors:
            self.add_error("new_join", gettext("Enter at least one recipient."))
        return self._list(name, keys, "new_name")

    def _list(self, name: str, keys: list[str], field: str) -> RecipientList | None:
        try:
            return RecipientList(name=name, keys=tuple(dict.fromkeys(keys)))
        except ValidationError:
            self.add_error(field, gettext("A name or a recipient is longer than 200 characters."))
            return None

    def _typed(self, field: str) -> list[str]:
        """The keys of the recipients that were entered, separated by commas."""
        found = []
        for typed in filter(None, map(str.strip, (self.cleaned_data.get(field) or "").split(","))):
            try:
                found.append(canonical_key(typed) or _registered_key(typed))
            except forms.ValidationError as exc:
                self.add_error(field, exc)
        return found

    def _set_zone(self, name: str) -> None:
        """Select the zone of the document, and offer it even if its name is not among the usual ones."""
        zone: Any = self.fields["time_zone"]
        zone.initial = name
        if not zone.valid_value(name):
            zone.choices = [(name, name), *time_zone_choices()]


def _added_field() -> forms.CharField:
    return forms.CharField(
        label=_("Add recipients"),
        required=False,
        max_length=20_000,
        help_text=_(
            "Choose an approved recipient, or enter names, aliases or accounts, separated by commas. For others, enter "
            "bank:044:0123456789, address:… or user:…"
        ),
        widget=forms.TextInput(attrs=_REGISTERED),
    )


def _registered_key(typed: str) -> str:
    """The key of the one approved recipient with this name, alias or account. Raises ValidationError."""
    is_meant = Q(name__iexact=typed) | Q(alias__iexact=typed) | Q(account__iexact=typed)
    found = [version for version in _approved().filter(is_meant)[:2] if not version.is_altered]
    if len(found) == 1:
        return found[0].key
    several = _("“{typed}” matches more than one recipient. Choose one by its account.")
    unknown = _(
        "“{typed}” is not an approved recipient. Choose one, or enter bank:, the bank code, a colon and 10 digits; "
        "address: and the address; or user: and the username."
    )
    raise forms.ValidationError(str(several if found else unknown).format(typed=typed[:80]))


def _approved() -> QuerySet[RecipientVersion]:
    return newest_versions().filter(state=RecipientState.APPROVED)
