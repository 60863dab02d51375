"""From one day to another, in the time zone of the person who asks."""

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.utils import timezone


class PeriodForm(forms.Form):
    """Filters with a first and a last day, both included, both optional."""

    since = forms.DateField(required=False, label="From", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput(attrs={"type": "date"}))

    def clean(self) -> dict[str, Any]:
        """Refuse a period that ends before it begins."""
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since > until:
            self.add_error("until", "This day is before the first one. Choose the same day or a later one.")
        return self.cleaned_data


def start_of(day: date) -> datetime:
    """Midnight at the beginning of the day, in the current time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))
