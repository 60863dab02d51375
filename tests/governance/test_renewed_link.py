"""The first administrator renews the link of the second one, who has no authenticator yet: a new installation
only.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts import staff
from backoffice.accounts.models import SetupLink, User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.governance.bootstrap import (
    NotBootstrappingError,
    bootstrap_state,
    invite_second_administrator,
    people_with_renewable_link,
    renew_second_administrator_link,
)
from tests import factories
from tests.accounts.steps import age_second_factor, authenticator, code_of, set_up_account

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
CHOSEN = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD}


@pytest.fixture
def first(administrator: User) -> User:
    User.objects.filter(pk=administrator.pk).update(last_login=timezone.now())
    return administrator


@pytest.fixture
def earlier(first: User) -> str:
    """The token of the first link."""
    return invite_second_administrator("i@example.com", full_name="Ibrahim Sani", actor=first)[1]


@pytest.fixture
def second(earlier: str) -> User:
    return User.objects.get(email="i@example.com")


@pytest.fixture
def client(first: User, sign_in: SignIn) -> Client:
    return sign_in(Client(), first)


def page_of(person: User) -> str:
    return reverse("governance:renew_link", args=[person.pk])


def set_up_page(token: str) -> str:
    return reverse("accounts:set_up", args=[token])


def expire() -> None:
    link = SetupLink.objects.get()
    link.expires_at = timezone.now() - timedelta(minutes=1)
    link.make_seal()
    link.save()


def shown_in(answer: Any) -> str:
    found = re.search(r'data-copy="[^"]*(/account/set-up/[^"]+)"', answer.content.decode())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("is_expired", [True, False])
def test_the_first_administrator_renews_the_link_without_a_shell(
    client: Client, first: User, second: User, earlier: str, *, is_expired: bool
) -> None:
    if is_expired:
        expire()
    for place in ("governance:team", "governance:bootstrap"):
        assert page_of(second) in client.get(reverse(place)).content.decode()
    assert page_of(second) in client.get(reverse("governance:person", args=[second.pk])).content.decode()
    assert "When you create it, the earlier link" in client.get(page_of(second)).content.decode()
    assert Client().get(set_up_page(earlier)).status_code == (
        404 if is_expired else 200
    )  # nothing was done yet
    answer = client.post(page_of(second))
    assert "no-store" in answer.headers["Cache-Control"]
    newer = shown_in(answer)
    assert Client().get(set_up_page(earlier)).status_code == 404
    entry = Entry.objects.filter(action=Action.SETUP_LINK_CREATED).latest("pk")
    assert (entry.actor, entry.target_id) == (first, str(second.pk))
    assert Client().post(newer, CHOSEN).status_code == 302
    assert User.objects.get(pk=second.pk).last_login is not None
    assert User.objects.filter(is_active=True).count() == 2
    assert BreakGlassChange.objects.unacknowledged().count() == 1


def test_a_new_link_replaces_a_password_without_an_authenticator(
    client: Client, first: User, second: User, earlier: str
) -> None:
    """The second administrator used the first link and did not finish: no shell is needed, and the old session ends."""
    unfinished = Client()
    assert unfinished.post(set_up_page(earlier), CHOSEN, follow=True).status_code == 200
    code = code_of(authenticator(second, confirmed=False))
    newer = shown_in(client.post(page_of(second)))
    late = unfinished.post(reverse("accounts:enrol"), {"code": code})
    assert (late.status_code, late.headers["Location"].split("?")[0]) == (302, reverse("accounts:sign_in"))
    assert not User.objects.get(pk=second.pk).has_usable_password()
    entry = Entry.objects.filter(action=Action.PASSWORD_RESET).get()
    assert (entry.actor, entry.target_id) == (first, str(second.pk))
    set_up_account(newer)
    assert authenticator(second).confirmed
    assert not bootstrap_state().is_open


def test_a_new_link_needs_a_fresh_second_factor_and_a_csrf_token(
    client: Client, first: User, second: User, earlier: str
) -> None:
    age_second_factor(client, minutes=6)
    answer = client.post(page_of(second))
    assert (answer.status_code, 'name="code"' in answer.content.decode()) == (422, True)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post(page_of(second)).status_code == 403
    assert Client().get(set_up_page(earlier)).status_code == 200


@pytest.mark.parametrize(
    "what",
    ["set up", "reset", "deactivated", "other people", "break-glass", "a second active one"],
)
def test_the_link_is_not_renewed_any_more(
    client: Client, first: User, second: User, earlier: str, what: str
) -> None:
    if what in {"set up", "reset"}:
        set_up_account(set_up_page(earlier))
    elif what == "deactivated":
        User.objects.filter(pk=second.pk).update(is_active=False)
    elif what == "other people":
        factories.person("Tunde Bello", Role.PREPARER)
    elif what == "break-glass":
        factories.break_glass(first)
    else:
        factories.person("Kemi Balogun", Role.ADMINISTRATOR)
    if what == "reset":
        staff.reset_second_factor(second.pk, actor=None)
    before = list(SetupLink.objects.values_list("digest"))
    with pytest.raises(NotBootstrappingError):
        renew_second_administrator_link(second.pk, actor=first)
    client.post(page_of(second))
    assert list(SetupLink.objects.values_list("digest")) == before
    assert people_with_renewable_link() == frozenset()
    assert page_of(second) not in client.get(reverse("governance:team")).content.decode()


def test_only_the_invited_second_administrator_gets_a_new_link(
    client: Client, first: User, second: User
) -> None:
    """Not the first administrator, and not an account that was made at the shell."""
    User.objects.filter(pk=first.pk).update(last_login=None)
    with pytest.raises(NotBootstrappingError):
        renew_second_administrator_link(first.pk, actor=first)
    assert client.post(page_of(first)).status_code == 302
    assert SetupLink.objects.get().user == second
