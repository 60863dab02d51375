"""What fields say without messages of their own, and that every form of the product has these."""

import ast
from typing import Any

import pytest
from django import forms
from django.core.validators import MinValueValidator, RegexValidator

from backoffice.core.web.forms import PageForm
from tests.test_house import modules, parsed

OPTIONS = [("a", "A"), ("b", "B")]


def errors_of(field: forms.Field, typed: Any) -> str:
    class AskingForm(PageForm):
        asked = field

    return " ".join(
        map(str, AskingForm(typed if isinstance(typed, dict) else {"asked": typed}).errors["asked"])
    )


@pytest.mark.parametrize(
    ("field", "typed", "expected"),
    [
        (forms.CharField(), "", "Enter a value."),
        (forms.CharField(max_length=3), "abcd", "Enter at most 3 characters. You entered 4."),
        (forms.CharField(min_length=3), "ab", "Enter at least 3 characters. You entered 2."),
        (forms.EmailField(), "", "Enter an email address."),
        (forms.EmailField(), "nobody", "Enter an email address such as name@example.com."),
        (forms.IntegerField(), "", "Enter a number."),
        (forms.IntegerField(), "1.5", "Enter a number without decimals."),
        (forms.IntegerField(min_value=1), "0", "Enter 1 or more."),
        (forms.IntegerField(max_value=9), "10", "Enter 9 or less."),
        (forms.DecimalField(), "many", "Enter a number."),
        (forms.DateField(), "", "Choose a day."),
        (forms.DateField(), "yesterday", "Enter the day as year, month and day, such as 2026-03-31."),
        (forms.DateTimeField(), "soon", "Enter the day and the time, such as 2026-03-31 14:30."),
        (forms.TimeField(), "noon", "Enter the time as hours and minutes, such as 14:30."),
        (forms.BooleanField(), "", "Tick this box."),
        (forms.FileField(), "", "Choose a file."),
        (forms.UUIDField(), "7", "This ID is not complete."),
        (forms.ChoiceField(choices=OPTIONS), "", "Select one of the options."),
        (forms.ChoiceField(choices=OPTIONS), "c", "Select one of the options: “c” is not among them."),
        (forms.TypedChoiceField(choices=OPTIONS), "", "Select one of the options."),
        (forms.MultipleChoiceField(choices=OPTIONS), {}, "Select at least one option."),
        (
            forms.MultipleChoiceField(choices=OPTIONS),
            {"asked": ["c"]},
            "Select one of the options: “c” is not among them.",
        ),
    ],
)
def test_a_field_says_what_to_enter(field: forms.Field, typed: Any, expected: str) -> None:
    assert errors_of(field, typed) == expected


class OwnField(forms.CharField):
    default_error_messages = {"required": "Of its class"}


@pytest.mark.parametrize(
    ("field", "typed", "expected"),
    [
        (forms.CharField(error_messages={"required": "Enter an amount."}), "", "Enter an amount."),
        (OwnField(), "", "Of its class"),
        (forms.CharField(validators=[RegexValidator("^a", "Begin with a.")]), "b", "Begin with a."),
        (forms.IntegerField(validators=[MinValueValidator(2, "Two at least.")]), "1", "Two at least."),
    ],
)
def test_a_message_of_its_own_is_kept(field: forms.Field, typed: str, expected: str) -> None:
    assert errors_of(field, typed) == expected


def test_a_field_that_is_added_later_says_so_too() -> None:
    form = PageForm({})
    form.fields["later"] = forms.CharField()
    assert form.errors["later"] == ["Enter a value."]


def test_every_form_of_the_product_has_these_messages() -> None:
    found = [
        f"{module}.{node.name}"
        for module in modules()
        if module.startswith("backoffice.")
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.ClassDef)
        and any(
            ast.unparse(base) in {"forms.Form", "forms.ModelForm", "Form", "ModelForm"} for base in node.bases
        )
    ]
    assert found == ["backoffice.core.web.forms.PageForm"]
