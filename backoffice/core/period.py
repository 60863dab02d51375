"""From one day to another, in the time zone of the person who asks."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone

FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2099, 12, 31)
_OUT_OF_REACH = f"Choose a day from {FIRST_DAY} to {LAST_DAY}."


def day_field(label: str) -> forms.DateField:
    """The browser knows the first and the last day too: while a year is being typed it holds the form back."""
    return forms.DateField(
        required=False,
        label=label,
        widget=forms.DateInput(
            attrs={"type": "date", "min": FIRST_DAY.isoformat(), "max": LAST_DAY.isoformat()}
        ),
        validators=[MinValueValidator(FIRST_DAY, _OUT_OF_REACH), MaxValueValidator(LAST_DAY, _OUT_OF_REACH)],
    )


class PeriodForm(forms.Form):
    """Filters with a first and a last day, both included, both optional.

    Days far off are refused: at the ends of the calendar a day has no beginning or no end in some time zones.
    """

    since = day_field("From")
    until = day_field("To")

    def clean(self) -> dict[str, Any]:
        """Refuse a period that ends before it begins."""
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since > until:
            self.add_error("until", "This day is before the first one. Choose the same day or a later one.")
        return self.cleaned_data


def start_of(day: date) -> datetime:
    """Midnight at the beginning of the day, in the current time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))


def end_of(day: date) -> datetime:
    """Midnight at the end of the day, in the current time zone: the first moment that no longer belongs to it."""
    return start_of(day + timedelta(days=1))
