"""My account: what it shows and what it keeps."""

import gzip
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.protection.lockout import WRONG_FOR_ACCOUNT_AND_ADDRESS
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db
ME = "/account/"


def test_the_page_shows_the_sign_in_methods_and_is_small(signed_in: Client, preparer: User) -> None:
    steps.recovery_codes(preparer)
    page = signed_in.get(ME)
    assert len(gzip.compress(page.content)) <= 14_000
    text = page.content.decode()
    assert all(words in text for words in ("Tunde Bello", preparer.email, "10 of 10 unused", "this session"))


def test_a_low_number_of_recovery_codes_is_warned_of(signed_in: Client) -> None:
    assert "none left" in signed_in.get(ME).content.decode()


def test_preferences_are_saved_and_used_from_the_next_page_on(signed_in: Client, preparer: User) -> None:
    typed = {"time_zone": "Asia/Tokyo", "theme": "dark", "language": "fr"}
    page = signed_in.post(reverse("accounts:preferences"), typed, follow=True).content.decode()
    assert '<html lang="fr"' in page
    assert 'data-theme="dark"' in page
    assert "Asia/Tokyo (UTC+9)" in page
    preparer.refresh_from_db()
    assert (preparer.time_zone, preparer.theme, preparer.language) == ("Asia/Tokyo", "dark", "fr")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"theme": "pink"}, "theme"),
        ({"theme": ""}, "theme"),
        ({"language": "tlh"}, "language"),
    ],
)
def test_an_invalid_choice_is_reported_at_its_field(
    signed_in: Client, preparer: User, change: dict[str, str], field: str
) -> None:
    sent = {"time_zone": "UTC", "theme": "dark", "language": "en", **change}
    answer = signed_in.post(reverse("accounts:preferences"), sent)
    assert answer.status_code == 422
    assert answer.context["form"].errors[field]
    preparer.refresh_from_db()
    assert (preparer.time_zone, preparer.theme) == ("Africa/Lagos", "auto")


@pytest.mark.parametrize(
    "name", ["sign_in", "second_factor", "enrol", "recovery_codes", "my_account", "password"]
)
def test_no_page_violates_the_content_security_policy(signed_in: Client, name: str) -> None:
    page = signed_in.get(reverse(f"accounts:{name}"))
    text = page.content.decode()
    assert "unsafe" not in page["Content-Security-Policy"]
    assert not [mark for mark in (" style=", "<style", " onclick=", "javascript:") if mark in text]
    assert text.count("<script") == text.count("<script src=")


SignIn = Callable[[Client, User], Client]


def test_changing_the_password_ends_other_sessions_and_rotates_the_session_key(
    signed_in: Client, preparer: User, sign_in: SignIn
) -> None:
    other, key = sign_in(Client(), preparer), signed_in.session.session_key
    page = steps.change_password(signed_in)
    assert "Password changed" in page.content.decode()
    assert signed_in.session.session_key != key
    assert list(StaffSession.objects.values_list("pk", flat=True)) == [steps.row_key(signed_in)]
    assert other.get(ME).status_code == 302


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"repeated": "something else entirely"}, "repeated", "differ"),
        ({"new_password": "short", "repeated": "short"}, "new_password", "at least 12"),
        ({"new_password": "1qaz2wsx3edc", "repeated": "1qaz2wsx3edc"}, "new_password", "too common"),
        ({"new_password": "aaaaaaaaaaaa", "repeated": "aaaaaaaaaaaa"}, "new_password", "easily guessed"),
        ({"new_password": "qwertyuiopasd", "repeated": "qwertyuiopasd"}, "new_password", "easily guessed"),
        ({"new_password": "123456789012", "repeated": "123456789012"}, "new_password", "easily guessed"),
        ({"new_password": "tunde@countersign", "repeated": "tunde@countersign"}, "new_password", "similar"),
    ],
)
def test_an_unacceptable_password_is_reported_at_its_field(
    signed_in: Client, change: dict[str, str], field: str, reason: str
) -> None:
    answer = steps.change_password(signed_in, **change)
    assert answer.status_code == 422
    assert reason in " ".join(answer.context["form"].errors[field])
    assert not Entry.objects.exists()


def test_the_current_password_is_no_new_one(signed_in: Client) -> None:
    answer = steps.change_password(signed_in, new_password=PASSWORD, repeated=PASSWORD)
    assert answer.status_code == 422
    assert answer.context["form"].errors["new_password"] == [
        "This is your current password. Nothing was changed. Choose another one."
    ]


def test_a_wrong_current_password_changes_nothing_and_is_audited(signed_in: Client, preparer: User) -> None:
    answer = steps.change_password(signed_in, old_password="not this one")
    assert answer.status_code == 422
    assert answer.context["form"].errors["old_password"] == [
        "This is not your current password. Nothing was changed."
    ]
    entry = Entry.objects.get()
    assert (entry.action, entry.actor, entry.detail) == (
        Action.PASSWORD_REFUSED,
        preparer,
        {"reason": "wrong password"},
    )
    assert User.objects.get(pk=preparer.pk).check_password(PASSWORD)


def test_guesses_of_the_current_password_are_throttled(signed_in: Client, preparer: User) -> None:
    for number in range(WRONG_FOR_ACCOUNT_AND_ADDRESS):
        steps.change_password(signed_in, old_password=f"wrong {number}")
    answer = steps.change_password(signed_in)
    assert answer.status_code == 422
    assert "Too many wrong passwords" in " ".join(answer.context["form"].errors["old_password"])
    assert User.objects.get(pk=preparer.pk).check_password(PASSWORD)
    assert Entry.objects.latest("position").detail == {"reason": "locked out"}
    assert steps.give_password(Client(), preparer).status_code == 429
