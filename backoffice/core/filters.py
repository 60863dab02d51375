"""Filters as a form: what is set of them, in an address and in words."""

from typing import Any, ClassVar

from django import forms

from backoffice.core.period import PeriodForm


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
        if isinstance(field, forms.ChoiceField):
            choices: Any = field.choices
            return str(dict(choices)[value])
        return str(field.label) if isinstance(field, forms.BooleanField) else f"{field.label}: {value}"
