"""What people choose about a rotation."""

from datetime import timedelta

from django import forms

_MINUTES = [
    ("5", "5 minutes"),
    ("15", "15 minutes"),
    ("60", "an hour"),
    ("240", "4 hours"),
    ("1440", "a day"),
]


class WatchForm(forms.Form):
    """How long the new key is watched before the old one ends."""

    minutes = forms.ChoiceField(label="Watch for", choices=_MINUTES, initial="60")

    @property
    def lasting(self) -> timedelta:
        """The chosen time. Call only on a valid form."""
        return timedelta(minutes=int(self.cleaned_data["minutes"]))
