"""Post/redirect/get: the answer to a browser's form has an address that its own session may open again."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.models import AnsweredForm
from backoffice.core.web.submissions import KEPT, PARAMETER, submission_id
from tests.factories import PASSWORD

SignIn = Callable[[Client, User], Client]
PREFERENCES, ME = "/account/preferences/", "/account/"
WRONG = {"time_zone": "Mars/Olympus", "theme": "dark", "language": "en"}
BY_A_BROWSER = {"Sec-Fetch-Mode": "navigate", "Referer": "http://testserver/account/?tab=1"}


@pytest.fixture
def as_preparer(client: Client, preparer: User, sign_in: SignIn) -> Client:
    return sign_in(client, preparer)


def submit(client: Client, **headers: str) -> Any:
    return client.post(PREFERENCES, WRONG, headers=BY_A_BROWSER | headers)


def test_a_refused_form_redirects_to_a_page_that_can_be_reloaded(as_preparer: Client) -> None:
    answer = submit(as_preparer)
    assert answer.status_code == 303
    address = answer.headers["Location"]
    assert address.startswith(f"{ME}?tab=1&{PARAMETER}=")
    pages = [as_preparer.get(address) for _ in range(2)]
    assert [page.status_code for page in pages] == [422, 422]
    assert "Select one of the options" in pages[0].content.decode()
    assert pages[0].content == pages[1].content


def test_the_page_is_stored_encrypted(as_preparer: Client) -> None:
    submit(as_preparer)
    assert b"<html" not in bytes(AnsweredForm.objects.get().encrypted_page)


def test_another_session_gets_the_page_with_the_form_instead(
    as_preparer: Client, sign_in: SignIn, preparer: User, approver: User
) -> None:
    address = submit(as_preparer).headers["Location"]
    for client in (sign_in(Client(), approver), sign_in(Client(), preparer), Client()):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["Location"]) == (302, f"{ME}?tab=1")


@pytest.mark.parametrize("value", ["", "none", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_answer_leads_to_the_page_with_the_form(as_preparer: Client, value: str) -> None:
    answer = as_preparer.get(f"{ME}?{PARAMETER}={value}")
    assert (answer.status_code, answer.headers["Location"]) == (302, ME)


def test_an_answer_expires_and_is_deleted_by_the_next_one(as_preparer: Client) -> None:
    address = submit(as_preparer).headers["Location"]
    AnsweredForm.objects.update(created_at=timezone.now() - KEPT - timedelta(seconds=1))
    assert as_preparer.get(address).status_code == 302
    submit(as_preparer)
    assert AnsweredForm.objects.count() == 1


def test_the_address_is_the_forms_own_if_the_browser_names_another_site(as_preparer: Client) -> None:
    answer = submit(as_preparer, Referer="https://elsewhere.example/")
    assert answer.headers["Location"].startswith(f"{PREFERENCES}?{PARAMETER}=")


def test_an_address_with_two_slashes_leads_to_no_other_site(as_preparer: Client) -> None:
    """A link to `https://our.host//elsewhere.example/` opens the page "not found", which has the form of the search."""
    answer = submit(as_preparer, Referer="http://testserver//elsewhere.example/?q=1")
    assert answer.headers["Location"].startswith(f"/%2Felsewhere.example/?q=1&{PARAMETER}=")
    answer = as_preparer.get(f"/?{PARAMETER}=none", PATH_INFO="//elsewhere.example/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/%2Felsewhere.example/")


@pytest.mark.parametrize("mode", ["cors", "same-origin", ""])
def test_a_request_by_a_script_is_answered_directly(as_preparer: Client, mode: str) -> None:
    assert submit(as_preparer, **{"Sec-Fetch-Mode": mode}).status_code == 422
    assert not AnsweredForm.objects.exists()


def test_a_successful_form_redirects_as_before(as_preparer: Client) -> None:
    sent = {"time_zone": "UTC", "theme": "dark", "language": "en"}
    answer = as_preparer.post(PREFERENCES, sent, headers=BY_A_BROWSER)
    assert (answer.status_code, answer.headers["Location"]) == (302, ME)


@pytest.mark.django_db
def test_strangers_are_answered_directly(client: Client) -> None:
    answer = client.post("/account/sign-in/", {"email": "a@b.example"}, headers=BY_A_BROWSER)
    assert answer.status_code == 422
    assert not AnsweredForm.objects.exists()


@pytest.mark.parametrize("address", ["/account/recovery-codes/", "/account/authenticator/"])
def test_a_page_with_a_secret_is_never_stored(as_preparer: Client, address: str) -> None:
    answer = as_preparer.post(address, {"old_password": PASSWORD}, headers=BY_A_BROWSER)
    assert answer.status_code in {200, 422}
    assert not AnsweredForm.objects.exists()


def test_a_form_keeps_its_id_and_gets_a_new_one_if_it_has_none() -> None:
    first, second = UUID(int=1), UUID(int=2)
    submitted, in_address = QueryDict(f"submission={first}"), QueryDict(f"submission={second}")
    assert submission_id(submitted, in_address) == first
    assert submission_id(QueryDict("submission="), in_address) == second
    assert submission_id(QueryDict()) != submission_id(QueryDict("submission=of no form")) != first
