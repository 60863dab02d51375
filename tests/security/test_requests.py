"""Requests that no page of the application makes: other methods, hidden files, parameters in the wrong place."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import StaffSession, User
from backoffice.audit.models import Entry
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests import factories
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db

HIDDEN = (
    "/.git/config",
    "/.env",
    "/manage.py",
    "/static/",
    "/static/../manage.py",
    "/static/%2e%2e/manage.py",
)
NOT_HERE = ("/admin/", "/docs/", "/swagger/", "/api/", "/graphql", "/__debug__/", "/server-status")


INJECTED = (
    "' OR '1'='1",
    "x'; DROP TABLE operations_operation; --",
    "%' OR 1=1 --",
    "\\'; SELECT pg_sleep(9); --",
)


@pytest.fixture
def signed_in(client: Client, preparer: User, sign_in: Callable[[Client, User], Client]) -> Client:
    """The preparer, with password and second factor given a moment ago."""
    return sign_in(client, preparer)


@pytest.mark.parametrize("text", INJECTED)
def test_text_of_a_search_is_no_sql(signed_in: Client, preparer: User, text: str) -> None:
    operation = factories.prepared(preparer)
    answers = {
        "search": signed_in.post("/search/", {"q": text}),
        "operations": signed_in.get("/operations/", {"text": text}),
        "transactions": signed_in.get("/transactions/", {"counterparty": text}),
    }
    assert {page: answer.status_code for page, answer in answers.items()} == dict.fromkeys(answers, 200)
    assert [page for page, answer in answers.items() if operation.reference in answer.content.decode()] == []
    assert operation.reference in signed_in.post("/search/", {"q": "Chidinma"}).content.decode()
    assert Operation.objects.filter(pk=operation.pk).exists()


@pytest.mark.parametrize("address", ["/", "/operations/", "/account/", "/account/sign-in/", "/metrics"])
@pytest.mark.parametrize("method", ["TRACE", "TRACK", "CONNECT"])
def test_methods_of_diagnosis_are_refused(signed_in: Client, method: str, address: str) -> None:
    answer = signed_in.generic(method, address, headers={"X-Secret": "canary"})
    assert answer.status_code == 405
    assert b"canary" not in answer.content


@pytest.mark.parametrize("address", [*HIDDEN, *NOT_HERE])
def test_neither_files_nor_tools_of_development_are_served(client: Client, address: str) -> None:
    assert client.get(address).status_code == 404


def test_parameters_of_the_address_are_no_form(client: Client, preparer: User) -> None:
    address = f"{reverse('accounts:sign_in')}?email={preparer.email}&password={PASSWORD}"
    assert client.post(address).status_code == 422
    assert not StaffSession.objects.exists()


def test_fields_that_a_form_does_not_have_change_nothing(signed_in: Client, preparer: User) -> None:
    typed = {"time_zone": "UTC", "theme": "dark", "language": "en"}
    more = {"is_active": "", "email": "other@countersign.example", "is_superuser": "on", "groups": "1"}
    before = User.objects.values("email", "is_superuser", "is_active", "password").get(pk=preparer.pk)
    assert signed_in.post(reverse("accounts:preferences"), {**typed, **more}).status_code == 302
    assert User.objects.values("email", "is_superuser", "is_active", "password").get(pk=preparer.pk) == before


def test_the_status_of_an_operation_is_no_field_of_its_forms(
    client: Client, preparer: User, approver: User, sign_in: Callable[[Client, User], Client]
) -> None:
    """Two approvals are needed: one form counts as one, whatever else it has."""
    operation = factories.prepared(preparer, amount=Decimal("10000000.01"))
    more = {"status": "approved", "approvals_needed": "0", "preparer": str(approver.pk)}
    address = f"{operation.get_absolute_url()}approve/"
    assert sign_in(client, approver).post(address, {"digest": operation.digest, **more}).status_code == 302
    stored = Operation.objects.get(pk=operation.pk)
    assert (stored.status, stored.approvals_needed, stored.approvals.count()) == (Status.PENDING, 2, 1)
    assert stored.preparer == preparer


@pytest.mark.parametrize(
    ("typed", "shown"),
    [("%2541", "%41"), ("%26lt%3B", "&amp;lt;"), ("%252E%252E", "%2E%2E"), ("%255cn", "%5cn")],
)
def test_what_was_typed_is_decoded_once(signed_in: Client, typed: str, shown: str) -> None:
    form = "application/x-www-form-urlencoded"
    assert f'value="{shown}"' in signed_in.post("/search/", f"q={typed}", content_type=form).content.decode()
    assert f'value="{shown}"' in signed_in.get(f"/operations/?text={typed}").content.decode()


def test_every_page_behind_sign_in_offers_to_sign_out(signed_in: Client) -> None:
    for page in ("/", "/operations/", "/reports/", "/account/", "/nowhere/"):
        assert f'action="{reverse("accounts:sign_out")}"' in signed_in.get(page).content.decode()


def test_every_text_names_its_encoding(signed_in: Client) -> None:
    kinds = {
        page: signed_in.get(page)["Content-Type"] for page in ("/", "/nowhere/", "/reports/operations.csv")
    }
    assert kinds == {
        "/": "text/html; charset=utf-8",
        "/nowhere/": "text/html; charset=utf-8",
        "/reports/operations.csv": "text/csv; charset=utf-8; header=present",
    }


def test_no_answer_allows_another_site_to_read_it(signed_in: Client) -> None:
    answer = signed_in.get("/", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("Access-Control-")]


def test_a_line_break_in_what_a_stranger_typed_makes_no_second_log_line(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.get("/no%0d%0asecond line/")
    assert [record for record in caplog.records if "\n" in record.getMessage()] == []
    assert not Entry.objects.exists()
