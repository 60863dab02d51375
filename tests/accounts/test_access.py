"""Every address against every state of sign-in."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from backoffice.accounts import urls
from backoffice.accounts.models import StaffSession, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps

pytestmark = pytest.mark.django_db

# The set-up page to whoever has a link, the metrics to this machine or with their token, the last to whoever knows
# its address.
OPEN_TO_STRANGERS = {"accounts:sign_in", "accounts:set_up", "operations:metrics", "webhooks:receive"}
OPEN_WITH_THE_PASSWORD_ALONE = {"accounts:sign_out", "accounts:second_factor", "accounts:enrol"}

# What a GET of each address is answered with: a status, or the step that the browser is sent to.
#                       nobody     password only    new, password only  codes not stored  signed in
ANSWERS = {
    "sign_in":             (200,       200,             200,            200,              200),
    "set_up":              (404,       404,             404,            404,              404),  # not a valid link
    "sign_out":            ("sign_in", 405,             405,            405,              405),
    "second_factor":       ("sign_in", 200,             "enrol",        200,              200),
    "enrol":               ("sign_in", "second_factor", 403,            200,              200),  # 403: no link
    "recovery_codes":      ("sign_in", "second_factor", "enrol",        200,              200),
    "recovery_codes_stored": ("sign_in", "second_factor", "enrol",        405,              405),
    "my_account":          ("sign_in", "second_factor", "enrol",        "recovery_codes", 200),
    "shortcuts":           ("sign_in", "second_factor", "enrol",        "recovery_codes", 200),
    "preferences":         ("sign_in", "second_factor", "enrol",        "recovery_codes", 405),
    "password":            ("sign_in", "second_factor", "enrol",        "recovery_codes", 200),
    "end_session":         ("sign_in", "second_factor", "enrol",        "recovery_codes", 405),
    "end_other_sessions":  ("sign_in", "second_factor", "enrol",        "recovery_codes", 405),
}  # fmt: skip


def test_access_table_covers_every_url() -> None:
    assert set(ANSWERS) == {pattern.name for pattern in urls.urlpatterns}


@pytest.mark.any_engine
@pytest.mark.parametrize("name", ANSWERS)
def test_access_when_signed_out(client: Client, name: str) -> None:
    assert _answer(client, name) == ANSWERS[name][0]


@pytest.mark.any_engine
@pytest.mark.parametrize("name", ANSWERS)
def test_access_after_the_password_only(password_only: Client, name: str) -> None:
    assert _answer(password_only, name) == ANSWERS[name][1]


@pytest.mark.any_engine
@pytest.mark.parametrize("name", ANSWERS)
def test_access_of_a_new_user_after_the_password(client: Client, newcomer: User, name: str) -> None:
    steps.give_password(client, newcomer)
    assert _answer(client, name) == ANSWERS[name][2]


@pytest.mark.any_engine
@pytest.mark.parametrize("name", ANSWERS)
def test_access_before_recovery_codes_are_confirmed(signed_in: Client, preparer: User, name: str) -> None:
    User.objects.filter(pk=preparer.pk).update(recovery_codes_stored_at=None)
    assert _answer(signed_in, name) == ANSWERS[name][3]


@pytest.mark.any_engine
@pytest.mark.parametrize("name", ANSWERS)
def test_access_when_signed_in(signed_in: Client, name: str) -> None:
    assert _answer(signed_in, name) == ANSWERS[name][4]


def test_only_sign_in_setup_links_metrics_and_webhooks_are_open_without_sign_in() -> None:
    opened = {name for name, view in _views() if not getattr(view, "login_required", True)}
    assert opened == OPEN_TO_STRANGERS


def test_only_the_sign_in_steps_open_with_the_password_alone() -> None:
    opened = {name for name, view in _views() if not getattr(view, "second_factor_required", True)}
    assert opened == OPEN_WITH_THE_PASSWORD_ALONE


def test_sign_in_redirects_to_the_page_requested(client: Client) -> None:
    answer = client.get("/account/password/?again=1")
    assert answer["Location"] == "/account/sign-in/?next=%2Faccount%2Fpassword%2F%3Fagain%3D1"


def test_sign_in_after_a_post_redirects_to_the_page_with_the_form(client: Client) -> None:
    answer = client.post("/account/preferences/", headers={"Referer": "http://testserver/account/"})
    assert answer["Location"] == "/account/sign-in/?next=%2Faccount%2F"


def test_sign_in_does_not_redirect_to_another_site(client: Client) -> None:
    answer = client.post("/account/preferences/", headers={"Referer": "http://elsewhere.example/account/"})
    assert answer["Location"] == "/account/sign-in/"


def test_a_request_by_htmx_is_redirected_to_the_whole_sign_in_page(client: Client) -> None:
    here = {"HX-Request": "true", "HX-Current-URL": "http://testserver/account/password/"}
    answer = client.get("/account/", headers=here)
    assert answer["HX-Redirect"] == "/account/sign-in/?next=%2Faccount%2Fpassword%2F"
    assert answer.content == b""


@pytest.mark.parametrize("name", ["my_account", "password", "sign_in", "second_factor", "recovery_codes"])
def test_pages_are_not_cached(signed_in: Client, name: str) -> None:
    assert signed_in.get(reverse(f"accounts:{name}"))["Cache-Control"] == "no-store"


def test_a_change_without_the_permission_is_refused_and_recorded(signed_in: Client, preparer: User) -> None:
    address = reverse("operations:approve", args=["00000000-0000-4000-8000-000000000000"])
    assert signed_in.post(address).status_code == 403
    entry = Entry.objects.get(action=Action.ACCESS_REFUSED)
    assert (entry.actor, entry.target_label) == (preparer, address)


def test_a_refused_read_is_recorded(signed_in: Client, preparer: User) -> None:
    assert signed_in.get("/settings/audit/").status_code == 403
    entry = Entry.objects.get(action=Action.ACCESS_REFUSED)
    assert (entry.actor, entry.target_label) == (preparer, "/settings/audit/")
    assert entry.detail == {"method": "GET"}


def test_a_stranger_adds_no_entry(client: Client) -> None:
    for method in (client.get, client.post):
        assert method("/settings/audit/").status_code == 302
    assert not Entry.objects.exists()


def test_times_are_shown_in_the_users_time_zone(signed_in: Client, preparer: User) -> None:
    User.objects.filter(pk=preparer.pk).update(time_zone="Asia/Tokyo")
    assert "Asia/Tokyo (UTC+9)" in signed_in.get(reverse("accounts:my_account")).content.decode()


def _answer(client: Client, name: str) -> int | str:
    """The status, or the step of sign-in that the browser is sent to."""
    answer = client.get(_address(name))
    if answer.status_code != 302:
        return answer.status_code
    return next(step for step in ANSWERS if answer["Location"].partition("?")[0] == _address(step))


def _address(name: str) -> str:
    has_argument = name in {"end_session", "set_up"}
    return reverse(f"accounts:{name}", args=["0123456789abcdef"] if has_argument else [])


def _views() -> Iterator[tuple[str, Any]]:
    yield from _walk(get_resolver().url_patterns, "")


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}", pattern.callback
        else:
            inner = f"{pattern.namespace}:" if pattern.namespace else prefix
            yield from _walk(pattern.url_patterns, inner)


@pytest.fixture
def strict() -> Client:
    """A browser as the product sees it: every form needs the token of its session."""
    return Client(enforce_csrf_checks=True)


def test_a_post_without_a_csrf_token_is_refused_and_audited(
    strict: Client, preparer: User, sign_in: Callable[[Client, User], Client]
) -> None:
    address = reverse("accounts:end_other_sessions")
    answer = sign_in(strict, preparer).post(address)
    assert answer.status_code == 403
    assert "This form is out of date" in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    entry = Entry.objects.get()
    assert (entry.action, entry.actor, entry.target_label) == (Action.ACCESS_REFUSED, preparer, address)
    assert "CSRF" in entry.detail["reason"]
    assert StaffSession.objects.filter(user=preparer).exists()


def test_csrf_failures_without_sign_in_are_not_audited(strict: Client) -> None:
    answer = strict.post(reverse("accounts:sign_in"), {"email": "ada@countersign.example"})
    assert answer.status_code == 403
    assert "This form is out of date" in answer.content.decode()
    assert not Entry.objects.exists()
