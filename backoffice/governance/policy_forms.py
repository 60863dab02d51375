"""The forms of approval policies: one rule, and an operation to try."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from backoffice.accounts.groups import active_groups
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core.fields import normalized_text
from backoffice.core.web.formatting import searched_amount
from backoffice.core.web.forms import PageForm
from backoffice.ledger import accounts as ledger
from backoffice.operations.kinds.base import KindSection
from backoffice.operations.kinds.registry import KINDS
from backoffice.policies.document import (
    MOST_APPROVALS,
    MOST_LEVELS,
    AmountBand,
    Conditions,
    Currencies,
    Hours,
    Level,
    Named,
    People,
    RecipientIs,
    Rule,
    TotalAbove,
    TotalOf,
    Window,
)
from backoffice.policies.sentences import kind_names, weekday_name
from payments_gateway import CURRENCIES

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_ANY = ("", _("Any"))
_DAYS_OF_A_WEEK = 7
_MOST_BOXES = 30
"""More people than that are a list to scroll."""


class AmountField(forms.CharField):
    """An amount, accepted with or without separators; None if it is left empty."""

    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        amount = searched_amount(text)
        if text and amount is None:
            raise forms.ValidationError(gettext("Enter an amount, such as 5,000,000."))
        return amount

    def prepare_value(self, value: Any) -> Any:
        """`10,000,000.00`, also for what was typed as 10000000."""
        amount = searched_amount(str(value)) if value not in {None, ""} else None
        if amount is None:
            return value
        return f"{amount:,.{max(2, len(normalized_text(amount).partition('.')[2]))}f}"


def _kind_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """All kinds, those that move money first."""
    names = kind_names()
    money = {kind.name for kind in KINDS.values() if kind.section == KindSection.MONEY}
    return [
        (gettext("Payments"), [(kind, name) for kind, name in names.items() if kind in money]),
        (gettext("Changes"), [(kind, name) for kind, name in names.items() if kind not in money]),
    ]


class PeopleChoices:
    """Roles, groups and people to choose from. Two queries."""

    def __init__(self) -> None:
        self.groups = {group.pk: group.name for group in active_groups()}
        people = User.objects.filter(is_active=True).order_by("full_name", "pk")
        found = list(people.values_list("pk", "full_name", "email"))
        self.people = {pk: name for pk, name, _email in found}
        times = Counter(self.people.values())
        self.labels = {pk: f"{name}, {email}" if times[name] > 1 else name for pk, name, email in found}
        """Names; with the email address where several people have the same."""

    @property
    def of_levels(self) -> list[tuple[str, str]]:
        """Everyone, a role, a group, or people who are named beside it."""
        return [
            ("", gettext("Everyone who may approve")),
            *self._roles_and_groups,
            ("named", gettext("Named people")),
        ]

    @property
    def of_preparers(self) -> list[tuple[str, str]]:
        people = [(f"person:{pk}", label) for pk, label in self.labels.items()]
        return [("", gettext("Anyone")), *self._roles_and_groups, *people]

    @property
    def _roles_and_groups(self) -> list[tuple[str, str]]:
        roles = [(f"role:{role.value}", gettext("Role {role}").format(role=role.label)) for role in Role]
        groups = [
            (f"group:{pk}", gettext("Group {group}").format(group=name)) for pk, name in self.groups.items()
        ]
        return roles + groups

    def read(self, choice: str, named: Iterable[str] = ()) -> People:
        """The people of a choice. Call only with choices that were offered."""
        sort, _, value = choice.partition(":")
        if sort == "role":
            return People(role=value)
        if sort == "group":
            return People(group=Named(id=int(value), name=self.groups[int(value)]))
        if sort == "person":
            named = [value]
        return People(named=tuple(Named(id=int(pk), name=self.people[int(pk)]) for pk in named))


def _choice_of(people: People | None) -> str:
    if people is None:
        return ""
    if people.role:
        return f"role:{people.role}"
    if people.group:
        return f"group:{people.group.id}"
    return "named" if people.named else ""


class RuleForm(PageForm):
    """One rule: its conditions, all of which have to fit, and its outcome."""

    kinds = forms.MultipleChoiceField(
        label=_("Kinds"),
        required=False,
        help_text=_("If none is selected, the rule applies to all kinds."),
        widget=forms.CheckboxSelectMultiple,
    )
    currencies = forms.CharField(
        label=_("Currencies"),
        required=False,
        max_length=200,
        help_text=_("Such as NGN, USD. An amount or a total needs exactly one."),
    )
    other_than = forms.BooleanField(label=_("Any currency other than these"), required=False)
    above = AmountField(label=_("Amount above"), required=False, max_length=40)
    up_to = AmountField(label=_("Amount up to"), required=False, max_length=40)
    recipient = forms.ChoiceField(label=_("Recipient"), required=False, choices=[_ANY, *RecipientIs.choices])
    on_list = forms.ChoiceField(label=_("Recipient on the list"), required=False)
    networks = forms.CharField(label=_("Networks"), required=False, max_length=200)
    preparer = forms.ChoiceField(label=_("Prepared by"), required=False)
    total_above = AmountField(label=_("Total above"), required=False, max_length=40)
    total_window = forms.ChoiceField(label=_("Period of the total"), required=False, choices=Window.choices)
    total_of = forms.ChoiceField(label=_("Counted for"), required=False, choices=TotalOf.choices)
    hours = forms.ChoiceField(
        label=_("Prepared"),
        required=False,
        choices=[
            ("", _("At any time")),
            ("inside", _("Within these hours")),
            ("outside", _("Outside these hours")),
        ],
    )
    weekdays = forms.TypedMultipleChoiceField(
        label=_("Weekdays"),
        required=False,
        coerce=int,
        help_text=_("A night, such as 22:00 to 06:00, belongs to the weekday on which it begins."),
        widget=forms.CheckboxSelectMultiple,
    )
    start = forms.TimeField(
        label=pgettext_lazy("time of day", "From"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}),
    )
    end = forms.TimeField(
        label=pgettext_lazy("time of day", "To"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}),
    )
    more_rows_than = forms.IntegerField(label=_("Rows in batch above"), required=False, min_value=0)
    refuse = forms.CharField(
        label=_("Refuse with this reason"),
        required=False,
        max_length=200,
        help_text=_("Leave empty to require approvals instead."),
    )
    position = forms.IntegerField(
        label=_("Position"),
        required=False,
        min_value=1,
        help_text=_(
            "The first matching rule applies. Leave empty to add this rule at the end. Placed higher, it applies "
            "before the rules below it, even where they are stricter."
        ),
    )

    def __init__(self, *args: Any, people: PeopleChoices, lists: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.people = people
        self._set_choices("kinds", _kind_choices())
        self._set_choices("on_list", [("", gettext("Any")), *((name, name) for name in lists)])
        self._set_choices("preparer", people.of_preparers)
        self._set_choices("weekdays", [(day, weekday_name(day)) for day in range(_DAYS_OF_A_WEEK)])
        named = [(str(pk), label) for pk, label in people.labels.items()]
        for number in range(1, MOST_LEVELS + 1):
            self.fields[f"needed{number}"] = forms.IntegerField(
                label=_("Approvals"), required=False, min_value=1, max_value=MOST_APPROVALS
            )
            self.fields[f"of{number}"] = forms.ChoiceField(
                label=_("Approvers"), required=False, choices=people.of_levels
            )
            self.fields[f"named{number}"] = forms.MultipleChoiceField(
                label=_("Named people"),
                required=False,
                help_text=_("Only if “Approvers” is “Named people”."),
                choices=named,
                widget=forms.CheckboxSelectMultiple
                if len(named) <= _MOST_BOXES
                else forms.SelectMultiple(attrs={"size": 8}),
            )

    def _set_choices(self, name: str, choices: list[Any]) -> None:
        field: Any = self.fields[name]
        field.choices = choices

    @property
    def levels(self) -> list[tuple[list[forms.BoundField], bool]]:
        """The fields of each level, and whether to show them: of the first, and where there is a value or an error."""
        levels = [
            [self[f"{name}{n}"] for name in ("needed", "of", "named")] for n in range(1, MOST_LEVELS + 1)
        ]
        return [
            (level, level is levels[0] or any(one.errors for one in level) or bool(level[0].value()))
            for level in levels
        ]

    @property
    def is_advanced_open(self) -> bool:
        """Whether a folded field has a value or an error."""
        folded = ("preparer", "on_list", "networks", "total_above", "hours", "more_rows_than")
        return any(self[name].value() not in {None, ""} or self[name].errors for name in folded)

    def clean_currencies(self) -> tuple[str, ...]:
        """Refuse what the provider has no balances or wallets in: such a rule would never fit."""
        return _known_in(
            _listed(self.cleaned_data["currencies"].upper()),
            {*ledger.known_currencies(), *settings.SECOND_APPROVAL_ABOVE, *_typed_before(self, "currencies")},
            gettext("Unknown currency: {unknown}. Known: {known}."),
        )

    def clean_networks(self) -> tuple[str, ...]:
        return _known_in(
            _listed(self.cleaned_data["networks"]),
            {*ledger.known_networks(), *_typed_before(self, "networks")},
            gettext("Unknown network: {unknown}. Known: {known}."),
        )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self.rule: Rule | None = None
        self._refuse_what_would_be_ignored(values)
        if not self.errors:
            try:
                self.rule = Rule(when=self._conditions(), refuse=values["refuse"], levels=self._levels())
            except ValidationError as exc:
                for error in exc.errors():
                    self.add_error(*_field_and_sentence(error["msg"]))
        return values

    def _refuse_what_would_be_ignored(self, values: dict[str, Any]) -> None:
        """Add an error where a value has no effect without another one, so that no rule means more than was typed."""
        some_days = 0 < len(values.get("weekdays") or ()) < _DAYS_OF_A_WEEK
        if not values.get("hours") and (values.get("start") or values.get("end") or some_days):
            self.add_error(
                "hours", gettext("Select whether the rule applies within or outside these days and hours.")
            )
        is_later_level = False
        for number in range(MOST_LEVELS, 0, -1):
            needed, of, named = (values.get(f"{name}{number}") for name in ("needed", "of", "named"))
            if of == "named" and not named:
                self.add_error(f"named{number}", gettext("Select at least one person."))
            if named and of != "named":
                self.add_error(f"of{number}", gettext("Select “Named people”, or no people."))
            if not needed and f"needed{number}" not in self.errors and (of or named or is_later_level):
                self.add_error(f"needed{number}", gettext("Enter how many must approve."))
            is_later_level = is_later_level or bool(needed)

    def _conditions(self) -> Conditions:
        values = self.cleaned_data
        codes = values["currencies"]
        band = (values["above"], values["up_to"])
        return Conditions(
            kinds=tuple(values["kinds"]),
            currencies=Currencies(codes=codes, other_than=values["other_than"])
            if codes or values["other_than"]
            else None,
            amount=AmountBand(above=band[0], up_to=band[1]) if band != (None, None) else None,
            recipient=values["recipient"] or None,
            on_list=values["on_list"],
            networks=values["networks"],
            preparer=self.people.read(values["preparer"]) if values["preparer"] else None,
            total=self._total(values["total_above"]),
            hours=self._hours() if values["hours"] else None,
            more_rows_than=values["more_rows_than"],
        )

    def _total(self, above: Decimal | None) -> TotalAbove | None:
        values = self.cleaned_data
        if above is None:
            return None
        window, of = values["total_window"] or Window.DAY, values["total_of"] or TotalOf.CURRENCY
        return TotalAbove(window=Window(window), of=TotalOf(of), above=above)

    def _hours(self) -> Hours:
        values = self.cleaned_data
        times = {name: values[name] for name in ("start", "end") if values[name]}
        return Hours(weekdays=tuple(values["weekdays"]), outside=values["hours"] == "outside", **times)

    def _levels(self) -> tuple[Level, ...]:
        values = self.cleaned_data
        return tuple(
            Level(
                needed=values[f"needed{n}"],
                of=self.people.read(
                    values[f"of{n}"], values[f"named{n}"] if values[f"of{n}"] == "named" else ()
                ),
            )
            for n in range(1, MOST_LEVELS + 1)
            if values[f"needed{n}"]
        )


def rule_initial(rule: Rule) -> dict[str, Any]:
    """The form's values for editing this rule."""
    when = rule.when
    values: dict[str, Any] = {
        "kinds": list(when.kinds),
        "currencies": ", ".join(when.currencies.codes) if when.currencies else "",
        "other_than": bool(when.currencies and when.currencies.other_than),
        "above": _text(when.amount.above if when.amount else None),
        "up_to": _text(when.amount.up_to if when.amount else None),
        "recipient": when.recipient or "",
        "on_list": when.on_list,
        "networks": ", ".join(when.networks),
        "preparer": _preparer_choice(when.preparer),
        "more_rows_than": when.more_rows_than,
        "refuse": rule.refuse,
    }
    if when.total:
        total = {
            "total_above": _text(when.total.above),
            "total_window": when.total.window,
            "total_of": when.total.of,
        }
        values.update(total)
    if when.hours:
        values.update(hours="outside" if when.hours.outside else "inside", weekdays=list(when.hours.weekdays))
        values.update(start=when.hours.start, end=when.hours.end)
    for number, level in enumerate(rule.levels, start=1):
        values[f"needed{number}"], values[f"of{number}"] = level.needed, _choice_of(level.of)
        values[f"named{number}"] = [str(one.id) for one in level.of.named]
    return values


def _preparer_choice(people: People | None) -> str:
    if people is not None and people.named:
        return f"person:{people.named[0].id}"
    return _choice_of(people)


def _text(amount: Decimal | None) -> str:
    return "" if amount is None else f"{amount:f}"


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _typed_before(form: forms.Form, name: str) -> tuple[str, ...]:
    """What the rule had when it was opened stays valid, also if the provider's list is shorter now."""
    return _listed(str(form.initial.get(name) or ""))


def _known_in(names: Sequence[str], known: Collection[str], message: str) -> tuple[str, ...]:
    """These names as they are known, whatever the case of their letters."""
    spelled = {name.casefold(): name for name in known}
    unknown = [name for name in names if name.casefold() not in spelled]
    if unknown:
        raise forms.ValidationError(
            message.format(unknown=", ".join(unknown), known=", ".join(sorted(known)))
        )
    return tuple(dict.fromkeys(spelled[name.casefold()] for name in names))


_SENTENCES: "dict[str, tuple[str | None, StrOrPromise]]" = {
    "an amount needs exactly one currency": (
        "currencies",
        _("An amount or a total needs exactly one currency."),
    ),
    "the lower end is not below the upper end": (
        "up_to",
        _("“Amount above” must be less than “Amount up to”."),
    ),
    "fewer people are named than must approve": (
        None,
        _("A level names fewer people than the approvals it requires."),
    ),
    "a rule refuses with a reason, or requires at least one approval": (
        None,
        _("Enter how many must approve, or a reason to refuse, not both."),
    ),
    "at least one weekday, each once": ("weekdays", _("Select at least one weekday.")),
    "the start is the end": (
        "end",
        _("“From” and “To” are the same time. Leave both empty for whole days."),
    ),
    "at least one currency": ("currencies", _("Enter at least one currency.")),
}


def _field_and_sentence(message: str) -> tuple[str | None, str]:
    """What pydantic refused, in words, and the field to which it belongs, if it is one."""
    found = next((one for code, one in _SENTENCES.items() if code in message), None)
    name, text = found or (None, gettext("The rule is not valid. Check its fields."))
    return name, str(text)


class TryForm(PageForm):
    """An operation to try: everything that the conditions of rules compare."""

    kind = forms.ChoiceField(label=_("Kind"))
    currency = forms.CharField(label=_("Currency"), required=False, max_length=12)
    amount = AmountField(label=_("Amount"), required=False, max_length=40)
    recipient = forms.CharField(
        label=_("Recipient"), required=False, max_length=200, help_text=_("Such as bank:044:0123456789.")
    )
    recipient_is = forms.MultipleChoiceField(
        label=_("About the recipient"),
        required=False,
        choices=[
            (one.value, one.label)
            for one in (
                RecipientIs.NEW,
                RecipientIs.SAVED,
                RecipientIs.PROVIDER_USER,
                RecipientIs.LOOK_ALIKE,
            )
        ],
        widget=forms.CheckboxSelectMultiple,
    )
    network = forms.CharField(label=_("Network"), required=False, max_length=60)
    preparer = forms.ChoiceField(label=_("Prepared by"))
    at = forms.DateTimeField(
        label=_("Prepared at"), required=False, widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    total = AmountField(
        label=_("Total over 24 hours and 7 days, including this operation"), required=False, max_length=40
    )
    rows = forms.IntegerField(label=_("Number of rows in the batch"), required=False, min_value=1)

    def __init__(self, *args: Any, people: PeopleChoices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind: Any = self.fields["kind"]
        kind.choices = _kind_choices()
        preparer: Any = self.fields["preparer"]
        preparer.choices = [(str(pk), label) for pk, label in people.labels.items()]

    def clean_currency(self) -> str:
        code: str = self.cleaned_data["currency"].strip().upper()
        if code and code not in CURRENCIES and not code.isalnum():
            raise forms.ValidationError(gettext("Enter the code of a currency, such as NGN."))
        return code

    def clean(self) -> dict[str, Any]:
        """An amount needs its currency: without one, all rules for a currency would seem not to fit."""
        values = super().clean() or self.cleaned_data
        if (values.get("amount") or values.get("total")) and values.get("currency") == "":
            self.add_error("currency", gettext("Enter the currency of the amount."))
        return values
