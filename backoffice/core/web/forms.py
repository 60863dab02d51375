"""Base forms for filtering lists: a period of days, the filters that are set, and their values in words.

Also the widget for one-time codes, typed amounts, and the start and end of a day in the current time zone.
"""

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.formatting import format_day

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2099, 12, 31)
_OUT_OF_RANGE = format_lazy(_("Choose a day from {first} to {last}."), first=FIRST_DAY, last=LAST_DAY)


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


class PeriodForm(forms.Form):
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


class ListFilterForm(PeriodForm):
    """The filters in the URL of a list. Reports and saved filters use the same names."""

    display_fields: ClassVar[frozenset[str]] = frozenset()  # fields that choose the display, not the rows

    @property
    def is_filtered(self) -> bool:
        """Whether any filter is set, so that an empty list can mention it."""
        return any(name not in self.display_fields for name in self._set)

    @property
    def query(self) -> dict[str, str]:
        """Name and text of every filter that is set, as in the URL. Call only on a valid form."""
        return {name: str(self.data[name]) for name in self._set}

    @property
    def summary(self) -> str:
        """The filters in words: `Done · Withdrawal · NGN`. Call only on a valid form."""
        return " · ".join(self._word(name, self.cleaned_data[name]) for name in self._set)

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
        return value_text if isinstance(field, forms.ChoiceField) else f"{field.label}: {value_text}"


_SEPARATED_AMOUNT = re.compile(
    r"[0-9]{1,3}(?P<separator>[, \u00a0\u2009\u202f])[0-9]{3}((?P=separator)[0-9]{3})*(\.[0-9]+)?"
)


def without_separators(text: str) -> str:
    """`5000.50` for `5,000.50` or `5 000.50`; any other text unchanged.

    The decimal point is a point in every language, as on the screen. So `5.000,50` and `1,5` remain, and are refused.
    """
    separated = _SEPARATED_AMOUNT.fullmatch(text)
    return text.replace(separated["separator"], "") if separated else text


class OneTimeCodeInput(forms.PasswordInput):
    """Input for a one-time code: visible while typed, never rendered back into the page."""

    input_type = "text"
