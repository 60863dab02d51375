"""One-time links: the person chooses a password by it, once, in time, and nobody learns anything from a wrong one."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import sign_in, staff
from backoffice.accounts.models import RefusedSignIns, SetupLink, StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps

pytestmark = pytest.mark.django_db

PASSWORD = "seven lanterns over the lagoon"
CHOSEN = {"new_password": PASSWORD, "repeated": PASSWORD}
INVALID = "This link is no longer valid"


@pytest.fixture
def invited(db: None) -> User:
    return staff.create_staff("ada@countersign.example", full_name="Ada Obi", roles=[Role.PREPARER])


@pytest.fixture
def address(invited: User) -> str:
    return link_of(invited)


def link_of(user: User) -> str:
    return reverse("accounts:set_up", args=[staff.issue_setup_link(user.pk, actor=None)])


def expire(*, in_minutes: int) -> None:
    """Let the link expire then, as if it had been made like this: sealed again."""
    link = SetupLink.objects.get()
    link.expires_at = timezone.now() + timedelta(minutes=in_minutes)
    link.make_seal()
    link.save()


def text_of(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def test_the_person_chooses_a_password_and_sets_up_an_authenticator(
    client: Client, invited: User, address: str
) -> None:
    page = text_of(client.get(address))
    assert "Ada Obi, ada@countersign.example" in page
    answer = client.post(address, CHOSEN, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/account/authenticator/")
    assert User.objects.get().check_password(PASSWORD)
    entry = Entry.objects.get(action=Action.SETUP_LINK_USED)
    assert (entry.actor, entry.target_id) == (invited, str(invited.pk))


def test_who_has_an_authenticator_needs_it_after_the_link(client: Client, preparer: User) -> None:
    staff.reset_password(preparer.pk, actor=None)
    answer = client.post(link_of(preparer), CHOSEN, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/account/second-factor/")
    assert client.get("/account/").status_code == 302
    assert steps.give_code(client, steps.code_of(steps.authenticator(preparer))).status_code == 302
    assert client.get("/account/").status_code == 200


def test_opening_the_page_does_not_use_the_link(client: Client, address: str) -> None:
    for _ in range(3):
        assert client.get(address).status_code == 200
    assert client.post(address, CHOSEN).status_code == 302


def test_a_refused_password_does_not_use_the_link(client: Client, address: str) -> None:
    for refused in ({"new_password": "short", "repeated": "short"}, {**CHOSEN, "repeated": "another"}):
        assert client.post(address, refused).status_code == 422
    assert SetupLink.objects.exists()
    assert client.post(address, CHOSEN).status_code == 302


def test_a_link_works_once(client: Client, address: str, invited: User) -> None:
    client.post(address, CHOSEN)
    other = Client()
    assert other.get(address).status_code == 404
    again = other.post(address, {"new_password": "another one entirely", "repeated": "another one entirely"})
    assert (again.status_code, INVALID in text_of(again)) == (404, True)
    assert User.objects.get(pk=invited.pk).check_password(PASSWORD)


def test_of_two_submissions_with_one_link_the_second_is_refused(
    client: Client, address: str, invited: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other submission comes between the check of the link and its use."""
    check, checks = sign_in.open_setup_link, []

    def and_then_used(request: Any, token: str) -> SetupLink:
        link = check(request, token)
        checks.append(link)
        if len(checks) == 2:  # the first is that of the page, the second that of the use
            SetupLink.objects.all().delete()
        return link

    monkeypatch.setattr(sign_in, "open_setup_link", and_then_used)
    assert client.post(address, CHOSEN).status_code == 404
    assert len(checks) == 2
    assert not User.objects.get(pk=invited.pk).has_usable_password()


def test_links_are_random(invited: User) -> None:
    tokens = {staff.issue_setup_link(invited.pk, actor=None) for _ in range(10)}
    assert len(tokens) == 10
    assert [token for token in tokens if not re.fullmatch(r"[\w-]{43}", token)] == []  # 256 bits


def test_a_link_is_valid_for_48_hours(client: Client, address: str) -> None:
    left = SetupLink.objects.get().expires_at - timezone.now()
    assert timedelta(hours=47, minutes=59) < left <= timedelta(hours=48)
    expire(in_minutes=1)
    assert client.get(address).status_code == 200
    expire(in_minutes=0)
    assert client.get(address).status_code == 404
    assert client.post(address, CHOSEN).status_code == 404


def test_a_new_link_ends_the_earlier_one(client: Client, address: str, invited: User) -> None:
    newer = link_of(invited)
    assert client.get(address).status_code == 404
    assert client.get(newer).status_code == 200
    assert SetupLink.objects.count() == 1


def test_the_link_of_a_deactivated_person_is_not_valid(client: Client, address: str, invited: User) -> None:
    User.objects.filter(pk=invited.pk).update(is_active=False)
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("entered", [None, {"new_password": "short", "repeated": "short"}])
def test_the_page_names_its_link_to_no_other_request(
    client: Client, preparer: User, sign_in: Callable[[Client, User], Client], address: str, entered: Any
) -> None:
    """Its styles and scripts are requests whose Referer a proxy may log. Somebody who is signed in gets the answer to
    the form directly, since the page with the form is not known by the Referer.
    """
    for browser in (client, sign_in(Client(), preparer)):
        headers = {"Sec-Fetch-Mode": "navigate", "Referer": "http://testserver/"}
        page = browser.post(address, entered, headers=headers) if entered else browser.get(address)
        assert (page.status_code, page["Referrer-Policy"]) == (422 if entered else 200, "strict-origin")


def test_a_wrong_link_does_not_say_whether_it_existed(client: Client, address: str, invited: User) -> None:
    never = client.get(reverse("accounts:set_up", args=["never-made"]))
    link_of(invited)
    replaced = client.get(address)
    assert (never.status_code, text_of(never)) == (replaced.status_code, text_of(replaced))
    assert "Ask the person who gave it to you for a new one" in text_of(never)


def test_five_wrong_links_lock_out_the_network_address(client: Client, address: str) -> None:
    wrong = [client.get(reverse("accounts:set_up", args=[f"guess-{number}"])) for number in range(5)]
    assert [answer.status_code for answer in wrong] == [404] * 4 + [429]
    locked = client.get(address)
    assert locked.status_code == 429
    assert "Wait 30 minutes" in text_of(locked)
    assert client.post(address, CHOSEN).status_code == 429
    assert Client(REMOTE_ADDR="192.0.2.7").get(address).status_code == 200
    assert RefusedSignIns.objects.aggregate(all=Sum("refused"))["all"] == 7
    assert not Entry.objects.filter(action=Action.SETUP_LINK_REFUSED).exists()


def test_the_link_remains_valid_after_the_secret_key_was_rotated(
    client: Client, address: str, settings: Settings
) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another " * 8
    assert client.get(address).status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert client.get(address).status_code == 404


def test_a_form_out_of_date_leaves_no_link_in_the_audit_log(
    preparer: User, sign_in: Callable[[Client, User], Client]
) -> None:
    address = link_of(preparer)
    strict = sign_in(Client(enforce_csrf_checks=True), preparer)
    assert strict.post(address, CHOSEN).status_code == 403
    refusal = Entry.objects.get(action=Action.ACCESS_REFUSED)
    assert refusal.target_label == "/account/set-up/•••/"


def test_using_the_link_ends_the_other_sessions(client: Client, preparer: User) -> None:
    steps.give_password(Client(), preparer)
    client.post(link_of(preparer), CHOSEN)
    assert StaffSession.objects.filter(user=preparer).count() == 1
