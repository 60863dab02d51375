"""Filters as a form: what is set of them, in an address and in words."""

from datetime import date
from typing import Any, ClassVar

from django import forms

from backoffice.core.display import written_day
from backoffice.core.period import PeriodForm


def in_words(field: forms.Field, value: object) -> str:
    """What a field was set to, as people read it: `Withdrawal`, `20 Nov 2026`, `yes`."""
    if isinstance(field, forms.ChoiceField) and not isinstance(field, forms.ModelChoiceField):
        choices: Any = field.choices
        return str(dict(choices)[value])
    if isinstance(value, date):
        return written_day(value)
    return "yes" if value is True else str(value)


class NarrowingForm(PeriodForm):
    """The filters of a list, in the address of its page; a report and a saved filter read the same names."""

    not_narrowing: ClassVar[frozenset[str]] = frozenset()  # they choose how it is shown

    @property
    def is_narrowed(self) -> bool:
        """Whether any filter is set, so that an empty list can say so."""
        return any(name not in self.not_narrowing for name in self._set)

    @property
    def typed(self) -> dict[str, str]:
        """Name and text of every filter that is set, as they stand in the address. Call only on a valid form."""
        return {name: str(self.data[name]) for name in self._set}

    @property
    def words(self) -> str:
        """The filters for people to read: `Done · Withdrawal · NGN`. Call only on a valid form."""
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
        words = in_words(field, value)
        return words if isinstance(field, forms.ChoiceField) else f"{field.label}: {words}"
