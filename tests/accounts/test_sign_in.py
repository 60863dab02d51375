"""The two steps of sign-in, as a browser sees them."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import RefusedSignIns, StaffSession, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db
HOME = "/"


def test_password_and_code_lead_to_the_overview(client: Client, preparer: User) -> None:
    first = steps.give_password(client, preparer)
    assert first["Location"] == reverse("accounts:second_factor")
    second = steps.give_code(client, steps.code_of(steps.authenticator(preparer)))
    assert second["Location"] == HOME
    assert client.get(HOME).status_code != 302


def test_the_email_address_is_case_insensitive(client: Client, preparer: User) -> None:
    answer = client.post(reverse("accounts:sign_in"), {"email": preparer.email.upper(), "password": PASSWORD})
    assert answer.status_code == 302


def test_the_session_key_is_rotated_at_each_step(client: Client, preparer: User) -> None:
    steps.give_password(client, preparer)
    after_password = client.session.session_key
    stored = steps.row_key(client)
    assert StaffSession.objects.filter(pk=stored).exists()
    steps.give_code(client, steps.code_of(steps.authenticator(preparer)))
    assert client.session.session_key != after_password
    assert not StaffSession.objects.filter(pk=stored).exists()


def test_signing_in_again_ends_the_previous_session(signed_in: Client, preparer: User) -> None:
    before = steps.row_key(signed_in)
    assert StaffSession.objects.filter(pk=before).exists()
    steps.give_password(signed_in, preparer)
    assert not StaffSession.objects.filter(pk=before).exists()
    assert signed_in.get(HOME)["Location"].startswith(reverse("accounts:second_factor"))


@pytest.mark.parametrize(
    ("change", "value"), [("email", "nobody@countersign.example"), ("password", "wrong horse battery")]
)
def test_a_wrong_password_and_an_unknown_address_get_the_same_response(
    client: Client, preparer: User, change: str, value: str
) -> None:
    typed = {"email": preparer.email, "password": PASSWORD, change: value}
    answer = client.post(reverse("accounts:sign_in"), typed)
    assert answer.status_code == 422
    assert answer.context["form"].non_field_errors() == [
        "Wrong email address or password. You are not signed in. Try again."
    ]
    assert "sessionid" not in answer.cookies
    assert not StaffSession.objects.exists()


def test_a_deactivated_user_gets_the_same_response_as_an_unknown_one(client: Client, preparer: User) -> None:
    User.objects.filter(pk=preparer.pk).update(is_active=False)
    answer = steps.give_password(client, preparer)
    assert answer.status_code == 422
    assert "Wrong email address" in answer.content.decode()


def test_the_form_keeps_the_address_and_never_the_password(client: Client, preparer: User) -> None:
    page = steps.give_password(client, preparer, "wrong horse battery").content.decode()
    assert preparer.email in page
    assert "wrong horse" not in page


@pytest.mark.parametrize("typed", [{}, {"email": "no address", "password": "x"}, {"email": "a@b.example"}])
def test_an_empty_form_is_reported_at_its_fields(client: Client, typed: dict[str, str]) -> None:
    answer = client.post(reverse("accounts:sign_in"), typed)
    assert answer.status_code == 422
    assert 'class="error"' in answer.content.decode()
    assert not Entry.objects.exists()


@pytest.mark.parametrize("exists", [True, False])
def test_the_fifth_wrong_password_locks_out_known_and_unknown_users(
    client: Client, preparer: User, exists: bool
) -> None:
    email = preparer.email if exists else "nobody@countersign.example"
    answers = [_try(client, email) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [422, 422, 422, 422, 429, 429]
    assert "Too many wrong passwords" in answers[-1].content.decode()
    assert not Entry.objects.exists()


def test_the_correct_password_is_refused_while_locked_out(client: Client, preparer: User) -> None:
    for _ in range(5):
        _try(client, preparer.email)
    assert steps.give_password(client, preparer).status_code == 429


def test_the_lockout_is_per_email_and_ip_address(client: Client, preparer: User, approver: User) -> None:
    for _ in range(5):
        _try(client, preparer.email)
    assert steps.give_password(client, approver).status_code == 302
    assert steps.give_password(Client(REMOTE_ADDR="10.9.8.7"), preparer).status_code == 302


def test_another_browser_at_the_same_ip_address_is_locked_out(client: Client, preparer: User) -> None:
    for attempt in range(5):
        _try(Client(HTTP_USER_AGENT=f"browser {attempt}"), preparer.email)
    assert steps.give_password(client, preparer).status_code == 429


@pytest.mark.parametrize(
    ("next_url", "leads_to"),
    [
        ("/account/password/", "/account/password/"),
        ("https://elsewhere.example/", HOME),
        ("//elsewhere.example/", HOME),
        ("javascript:alert(1)", HOME),
        ("elsewhere", HOME),  # no address, but it could be the name of one
        ("", HOME),
    ],
)
def test_sign_in_redirects_to_the_page_requested_on_this_host_only(
    client: Client, preparer: User, next_url: str, leads_to: str
) -> None:
    first = steps.give_password(client, preparer, next=next_url)
    page = client.get(first["Location"])
    second = steps.give_code(client, steps.code_of(steps.authenticator(preparer)), next=page.context["next"])
    assert second["Location"] == leads_to


def test_signing_out_ends_the_session_on_the_server(signed_in: Client) -> None:
    signed_in.post(reverse("accounts:sign_out"))
    assert not StaffSession.objects.exists()
    assert signed_in.get(HOME)["Location"].startswith(reverse("accounts:sign_in"))


def test_signing_out_leaves_nothing_in_the_browser(signed_in: Client, settings: Settings) -> None:
    answer = signed_in.post(reverse("accounts:sign_out"))
    assert set(answer["Clear-Site-Data"].split(", ")) == {'"cache"', '"storage"'}
    assert answer.cookies[settings.SESSION_COOKIE_NAME].value == ""


def test_signing_out_needs_a_post(signed_in: Client) -> None:
    assert signed_in.get(reverse("accounts:sign_out")).status_code == 405


def test_each_sign_in_is_audited_without_secrets(client: Client, preparer: User) -> None:
    client.post(reverse("accounts:sign_in"), {"email": "nobody@countersign.example", "password": "canary-1"})
    steps.give_password(client, preparer, "canary-2")
    steps.give_password(client, preparer)
    code = steps.code_of(steps.authenticator(preparer))
    steps.give_code(client, code)
    entries = [(entry.action, entry.target_label) for entry in Entry.objects.order_by("position")]
    assert entries == [
        (Action.PASSWORD_ACCEPTED, ""),
        (Action.SIGN_IN_COMPLETED, ""),
    ]
    log = " ".join(
        str(list(entry.values())) for entry in Entry.objects.values("target_label", "detail", "actor_label")
    )
    assert not any(secret in log for secret in ("canary", PASSWORD, code))


def test_a_wrong_password_is_neither_stored_nor_logged(client: Client, preparer: User, caplog: Any) -> None:
    steps.give_password(client, preparer, "canary-in-the-cage")
    stored = str(list(RefusedSignIns.objects.values()))
    assert preparer.email not in stored
    assert "canary" not in stored + caplog.text


def _try(client: Client, email: str) -> Any:
    return client.post(reverse("accounts:sign_in"), {"email": email, "password": "wrong horse battery"})
