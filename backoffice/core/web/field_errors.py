"""Our own messages for fields that are empty or wrong, and the base form of every page, which uses them.

A field with messages of its own keeps them. The others get the messages of their type, in place of Django's.
"""

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import EmailValidator
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

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
