"""Changing one's password: who may, what will not do, and how guessing ends."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import StaffSession, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db
ME = "/account/"
SignIn = Callable[[Client, User], Client]


def test_changing_the_password_ends_the_other_sessions_and_changes_the_key(
    signed_in: Client, maker: User, sign_in: SignIn
) -> None:
    other, key = sign_in(Client(), maker), signed_in.session.session_key
    page = steps.change_password(signed_in)
    assert "Your password is changed" in page.content.decode()
    assert signed_in.session.session_key != key
    assert list(StaffSession.objects.values_list("pk", flat=True)) == [signed_in.session.session_key]
    assert other.get(ME).status_code == 302


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"repeated": "something else entirely"}, "repeated", "differ"),
        ({"new_password": "short", "repeated": "short"}, "new_password", "at least 12"),
        ({"new_password": "1qaz2wsx3edc", "repeated": "1qaz2wsx3edc"}, "new_password", "too common"),
        ({"new_password": "739201846205", "repeated": "739201846205"}, "new_password", "entirely numeric"),
        ({"new_password": "tunde@countersign", "repeated": "tunde@countersign"}, "new_password", "similar"),
    ],
)
def test_a_password_that_will_not_do_is_refused_beside_its_field(
    signed_in: Client, change: dict[str, str], field: str, reason: str
) -> None:
    answer = steps.change_password(signed_in, **change)
    assert answer.status_code == 422
    assert reason in " ".join(answer.context["form"].errors[field])
    assert not Entry.objects.exists()


def test_a_wrong_present_password_changes_nothing_and_is_recorded(signed_in: Client, maker: User) -> None:
    answer = steps.change_password(signed_in, old_password="not this one")
    assert answer.status_code == 422
    assert answer.context["form"].errors["old_password"] == [
        "This is not your present password. Nothing was changed."
    ]
    entry = Entry.objects.get()
    assert (entry.action, entry.actor, entry.detail) == (
        Action.PASSWORD_REFUSED,
        maker,
        {"reason": "wrong password"},
    )
    assert User.objects.get(pk=maker.pk).check_password(PASSWORD)


def test_the_present_password_cannot_be_guessed_at_an_unlocked_desk(
    signed_in: Client, maker: User, settings: Settings
) -> None:
    for number in range(settings.AXES_FAILURE_LIMIT):
        steps.change_password(signed_in, old_password=f"wrong {number}")
    answer = steps.change_password(signed_in)
    assert answer.status_code == 422
    assert "Too many wrong passwords" in " ".join(answer.context["form"].errors["old_password"])
    assert User.objects.get(pk=maker.pk).check_password(PASSWORD)
    assert Entry.objects.latest("position").detail == {"reason": "locked out"}
    assert steps.give_password(Client(), maker).status_code == 429
