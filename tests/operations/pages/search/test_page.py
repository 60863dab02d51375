"""Who may search, what the page says, and how much it asks the database."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.ledger.transactions import filters
from backoffice.operations.lifecycle import pause
from tests import factories
from tests.ledger.stored_transactions import store, unsaved
from tests.operations.conftest import SignIn
from tests.operations.pages.search.steps import listed, paid, search
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db


def test_staff_are_found_by_users_who_may_view_them(
    sign_in: SignIn, administrator: User, auditor: User, approver: User
) -> None:
    rows = search(sign_in(Client(), administrator), "amara").context["found"].people.rows
    assert rows == [approver]
    assert search(sign_in(Client(), auditor), "amara").context["found"].people.rows == []


def test_a_staff_result_shows_roles_or_deactivation(
    sign_in: SignIn, administrator: User, approver: User
) -> None:
    signed_in = sign_in(Client(), administrator)
    assert Role.APPROVER in text_of(search(signed_in, "amara@"))
    User.objects.filter(pk=approver.pk).update(is_active=False)
    assert "Deactivated" in text_of(search(signed_in, "Okafor"))


def test_the_page_says_what_was_searched(as_preparer: Client) -> None:
    html = text_of(search(as_preparer, "nothing"))
    assert "No results in Countersign" in html
    assert "Words are searched for in the newest 5,000 operations." in html
    assert "as last reported" in html


@pytest.mark.parametrize(("text", "status"), [("", 200), ("x", 422), ("x" * 201, 422), ("a\x00b", 422)])
def test_an_invalid_search_is_explained(as_preparer: Client, text: str, status: int) -> None:
    answer = search(as_preparer, text)
    assert answer.status_code == status
    assert ('role="alert"' in text_of(answer)) is (status == 422)


@pytest.mark.parametrize("role", ["preparer", "approver", "auditor", "administrator"])
def test_the_search_field_is_on_every_page(
    sign_in: SignIn, request: pytest.FixtureRequest, role: str
) -> None:
    html = text_of(sign_in(Client(), request.getfixturevalue(role)).get("/account/"))
    assert 'action="/search/"' in html


def test_searching_needs_a_role(sign_in: SignIn, outsider: User) -> None:
    client = sign_in(Client(), outsider)
    assert search(client, "chidinma").status_code == 403
    assert 'action="/search/"' not in text_of(client.get("/account/"))


@pytest.mark.parametrize(("role", "most"), [("preparer", 8), ("approver", 8), ("administrator", 9)])
def test_a_search_takes_a_limited_number_of_queries(
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    preparer: User,
    role: str,
    most: int,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(11):
        paid(factories.prepared(preparer))
    store([unsaved() for _ in range(3)])
    client = sign_in(Client(), request.getfixturevalue(role))
    filters.known_facets()  # asked once by each process
    pause.cached_pause()  # asked once a second by each process
    with django_assert_max_num_queries(most):
        assert search(client, "bello").status_code == 200
    pause.cached_pause()
    with django_assert_max_num_queries(most):
        assert search(client, "ada").status_code == 200
    with django_assert_max_num_queries(most):
        assert listed(client, "ada").status_code == 200
