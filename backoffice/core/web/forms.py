"""The base form of every page, with our own messages for fields that are empty or wrong; and base forms for filtering
lists: a period of days, the filters that are set, and their values in words.

A field with messages of its own keeps them. The others get the messages of their type, in place of Django's.

Also the field for a reason, the widget for one-time codes, the time zones to choose from, and the start and end of a
day in the current one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode
from zoneinfo import available_timezones

from django import forms
from django.core.validators import EmailValidator, MaxValueValidator, MinValueValidator
from django.db.models import TextChoices
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.formatting import format_day, labelled

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_REASON = _("Reason")
_PERIOD = ("since", "until")
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2099, 12, 31)
_OUT_OF_RANGE = format_lazy(_("Choose a day from {first} to {last}."), first=FIRST_DAY, last=LAST_DAY)
_REGIONS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
_SELECT_ONE = _("Select one of the options.")
_NO_OPTION = _("Select one of the options: “%(value)s” is not among them.")
_SELECT_SOME = _("Select at least one option.")

_BY_TYPE: "dict[type[forms.Field], dict[str, StrOrPromise]]" = {
    forms.Field: {"required": _("Enter a value.")},
    forms.EmailField: {"required": _("Enter an email address.")},
    forms.IntegerField: {"required": _("Enter a number."), "invalid": _("Enter a number without decimals.")},
    forms.DecimalField: {"required": _("Enter a number."), "invalid": _("Enter a number.")},
    forms.DateField: {
        "required": _("Choose a day."),
        "invalid": _("Enter the day as year, month and day, such as 2026-03-31."),
    },
    forms.DateTimeField: {
        "required": _("Choose a day and a time."),
        "invalid": _("Enter the day and the time, such as 2026-03-31 14:30."),
    },
    forms.TimeField: {
        "required": _("Enter a time."),
        "invalid": _("Enter the time as hours and minutes, such as 14:30."),
    },
    forms.BooleanField: {"required": _("Tick this box.")},
    forms.FileField: {
        "required": _("Choose a file."),
        "missing": _("Choose a file."),
        "empty": _("This file is empty. Choose another one."),
    },
    forms.UUIDField: {"invalid": _("This ID is not complete.")},
    forms.ChoiceField: {"required": _SELECT_ONE, "invalid_choice": _NO_OPTION},
    forms.ModelChoiceField: {"required": _SELECT_ONE, "invalid_choice": _NO_OPTION},
    forms.MultipleChoiceField: {
        "required": _SELECT_SOME,
        "invalid_choice": _NO_OPTION,
        "invalid_list": _SELECT_SOME,
    },
    forms.ModelMultipleChoiceField: {
        "required": _SELECT_SOME,
        "invalid_choice": _NO_OPTION,
        "invalid_list": _SELECT_SOME,
        "invalid_pk_value": _SELECT_SOME,
    },
}
"""By type and code; those of the nearest type count."""

_BY_VALIDATOR: "dict[str, StrOrPromise]" = {
    "max_length": _("Enter at most %(limit_value)d characters. You entered %(show_value)d."),
    "min_length": _("Enter at least %(limit_value)d characters. You entered %(show_value)d."),
    "max_value": _("Enter %(limit_value)s or less."),
    "min_value": _("Enter %(limit_value)s or more."),
}
_EMAIL = _("Enter an email address such as name@example.com.")

_OF_DJANGO = {id(text) for kind in _BY_TYPE for text in kind.default_error_messages.values()}


class PageForm(forms.Form):
    """A form whose fields have our general messages where they have none of their own."""

    def full_clean(self) -> None:
        for field in self.fields.values():
            use_own_messages(field)
        super().full_clean()


def use_own_messages(field: forms.Field) -> None:
    """Replace the messages that Django gave this field, and those of its validators."""
    messages: dict[str, Any] = field.error_messages
    for kind in type(field).__mro__:
        for code, text in _BY_TYPE.get(kind, {}).items():
            if id(messages.get(code)) in _OF_DJANGO:
                messages[code] = text
    for validator in field.validators:
        code = getattr(validator, "code", "")
        if getattr(validator, "message", None) is not getattr(type(validator), "message", ""):
            continue
        if isinstance(validator, EmailValidator):
            messages.setdefault(code, _EMAIL)
        elif code in _BY_VALIDATOR:
            messages.setdefault(code, _BY_VALIDATOR[code])


def time_zone_choices() -> list[tuple[str, Any]]:
    """All time zones, grouped by region."""
    names = sorted(available_timezones())
    groups: list[tuple[str, Any]] = [("UTC", "UTC")]
    for region in _REGIONS:
        places = [name for name in names if name.startswith(f"{region}/")]
        groups.append((region, [(name, name.partition("/")[2].replace("_", " ")) for name in places]))
    return groups


def day_field(label: "StrOrPromise") -> forms.DateField:
    """A date field with a first and last day, set in the browser too, so that a half-typed year is not
    submitted.
    """
    return forms.DateField(
        required=False,
        label=label,
        widget=forms.DateInput(
            attrs={"type": "date", "min": FIRST_DAY.isoformat(), "max": LAST_DAY.isoformat()}
        ),
        validators=[MinValueValidator(FIRST_DAY, _OUT_OF_RANGE), MaxValueValidator(LAST_DAY, _OUT_OF_RANGE)],
    )


class SearchField(forms.CharField):
    """A text to search for. White space within it counts as one space: names are pasted from documents."""

    def to_python(self, value: Any) -> str:
        return " ".join(str(super().to_python(value)).split())


def reason_field(
    *,
    help_text: "StrOrPromise",
    missing: "StrOrPromise",
    label: "StrOrPromise" = _REASON,
    max_length: int = 500,
    rows: int = 3,
) -> forms.CharField:
    """A reason in the user's own words; `missing` is the error message for none."""
    return forms.CharField(
        label=label,
        max_length=max_length,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": rows}),
        error_messages={"required": missing},
    )


class PeriodForm(PageForm):
    """Filters with a first and a last day, both inclusive, both optional.

    Distant days are refused: at the ends of the calendar, the start or end of a day overflows in some time
    zones.
    """

    since = day_field(_("From"))
    until = day_field(_("To"))

    def clean(self) -> dict[str, Any]:
        """Refuse a period whose end is before its start."""
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since > until:
            self.add_error("until", gettext("The last day is before the first day. Choose a later day."))
        return self.cleaned_data


def start_of_day(day: date) -> datetime:
    """Midnight at the start of the day, in the current time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))


def end_of_day(day: date) -> datetime:
    """Midnight at the end of the day (exclusive), in the current time zone."""
    return start_of_day(day + timedelta(days=1))


def describe_value(field: forms.Field, value: object) -> str:
    """The value of a field in words: `Withdrawal`, `20 Nov 2026`, `yes`."""
    if isinstance(field, forms.ChoiceField) and not isinstance(field, forms.ModelChoiceField):
        choices: Any = field.choices
        return str(dict(choices)[value])
    if isinstance(value, date):
        return format_day(value)
    return gettext("yes") if value is True else str(value)


class DatePreset(TextChoices):
    """The periods that lists offer."""

    TODAY = "today", _("Today")
    LAST_7_DAYS = "last_7_days", _("Last 7 days")
    THIS_MONTH = "this_month", _("This month")
    LAST_MONTH = "last_month", _("Last month")


def preset_days(preset: DatePreset) -> tuple[date, date]:
    """The first and last day of the period now, in the current time zone."""
    today = timezone.localdate()
    match preset:
        case DatePreset.TODAY:
            return today, today
        case DatePreset.LAST_7_DAYS:
            return today - timedelta(days=6), today
        case DatePreset.THIS_MONTH:
            return today.replace(day=1), today
        case DatePreset.LAST_MONTH:
            last = today.replace(day=1) - timedelta(days=1)
            return last.replace(day=1), last


def query_of_stored(filters: Mapping[str, str]) -> dict[str, str]:
    """Stored filters as in a query string: a `preset` among them becomes its first and last day now."""
    stored = dict(filters)
    if "preset" in stored:
        first, last = preset_days(DatePreset(stored.pop("preset")))
        stored |= {"since": str(first), "until": str(last)}
    return stored


@dataclass(frozen=True)
class FilterLink:
    """An active filter, or a period to choose: its words, and the query string that removes or chooses it."""

    label: str
    value: str
    query: str
    is_active: bool = True


class ListFilterForm(PeriodForm):
    """The filters in the URL of a list. Reports and saved views use the same names."""

    display_fields: ClassVar[frozenset[str]] = frozenset()  # fields that choose the display, not the rows
    # Of those, the ones that the path of the list implies.
    fixed_fields: ClassVar[frozenset[str]] = frozenset()

    @property
    def is_filtered(self) -> bool:
        """Whether any filter is set, so that an empty list can mention it."""
        return any(name not in self.display_fields for name in self._set)

    @property
    def query(self) -> dict[str, str]:
        """Name and text of every filter that is set, as in the URL. Call only on a valid form."""
        return {name: str(self.data[name]) for name in self._set}

    @property
    def list_query(self) -> dict[str, str]:
        """The same without what the path of the list implies: its own parameters."""
        return {name: text for name, text in self.query.items() if name not in self.fixed_fields}

    @property
    def query_string(self) -> str:
        """`?currency=NGN&status=failed`: every filter that is set, for a link to another page."""
        return f"?{urlencode(self.query)}" if self.query else ""

    @property
    def summary(self) -> str:
        """The filters in words: `Done · Withdrawal · NGN`. Call only on a valid form."""
        return " · ".join(self._word(name, self.cleaned_data[name]) for name in self._set)

    @property
    def chips(self) -> list[FilterLink]:
        """Every active filter but the search text, each with the query string without it."""
        names = [name for name in self._set if name not in self.display_fields and name != "text"]
        period = [name for name in names if name in _PERIOD]
        chips = [self._chip(name) for name in names if name not in period or len(period) == 1]
        return [self._period_chip(), *chips] if len(period) > 1 else chips

    @property
    def presets(self) -> list[FilterLink]:
        """The periods to choose, in days of the current time zone."""
        return [
            FilterLink(
                str(preset.label),
                "",
                self._query_string(since=str(first), until=str(last)),
                self._days == (first, last),
            )
            for preset in DatePreset
            for first, last in [preset_days(preset)]
        ]

    @property
    def presets_of_days(self) -> list[DatePreset]:
        """The presets that have the chosen days today: on the first of a month, today and this month. Call only on a
        valid form.
        """
        return [preset for preset in DatePreset if preset_days(preset) == self._days]

    def stored_filters(self, preset: DatePreset | None) -> dict[str, str]:
        """The filters to store, for `query_of_stored`: with a preset instead of its days."""
        if preset is None:
            return self.query
        return {name: text for name, text in self.query.items() if name not in _PERIOD} | {"preset": preset}

    @property
    def _days(self) -> tuple[date | None, ...]:
        return tuple(self.cleaned_data.get(name) for name in _PERIOD)

    @property
    def unused_fields(self) -> list[forms.BoundField]:
        """The visible filters that are not active, invalid ones included."""
        hidden = {*self._set, *self.display_fields, "text"}
        return [field for field in self.visible_fields() if field.name not in hidden]

    @property
    def has_invalid_filter(self) -> bool:
        """Whether a filter other than the search text is invalid."""
        return bool(self.errors.keys() - {"text"})

    def _chip(self, name: str) -> FilterLink:
        field, value = self.fields[name], self.cleaned_data[name]
        words = "" if isinstance(field, forms.BooleanField) else describe_value(field, value)
        return FilterLink(str(field.label), words, self._query_string(without={name}))

    def _period_chip(self) -> FilterLink:
        first, last = (self.cleaned_data[name] for name in _PERIOD)
        words = format_day(first) if first == last else f"{format_day(first)} \N{EN DASH} {format_day(last)}"
        return FilterLink(gettext("Period"), words, self._query_string(without=_PERIOD))

    def _query_string(self, *, without: Collection[str] = (), **changes: str) -> str:
        kept = {name: text for name, text in self.list_query.items() if name not in without}
        return f"?{urlencode({**kept, **changes})}"

    @property
    def _set(self) -> list[str]:
        return [
            name
            for name, value in self.cleaned_data.items()
            if value not in ("", None) and value is not False
        ]

    def _word(self, name: str, value: object) -> str:
        field = self.fields[name]
        if isinstance(field, forms.BooleanField):
            return str(field.label)
        value_text = describe_value(field, value)
        return value_text if isinstance(field, forms.ChoiceField) else labelled(field.label, value_text)


class OneTimeCodeInput(forms.PasswordInput):
    """Input for a one-time code: visible while typed, never rendered back into the page."""

    input_type = "text"
