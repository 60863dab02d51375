"""The pages of the register: who may open them, what they show, and what they cost."""

import gzip
import uuid
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.governance import urls
from backoffice.operations.kinds.recipient import RecipientChange
from backoffice.operations.states import Status
from tests import factories
from tests.operations.pages.recipient_choice.steps import aged
from tests.operations.steps import text_of
from tests.recipients import registered

pytestmark = pytest.mark.django_db
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
LIST = "/settings/recipients/"

SignIn = Callable[[Client, User], Client]


@pytest.fixture
def as_preparer(sign_in: SignIn, preparer: User) -> Client:
    return sign_in(Client(), preparer)


@pytest.fixture
def as_approver(sign_in: SignIn, approver: User) -> Client:
    return sign_in(Client(), approver)


#                     preparer approver auditor administrator outsider
ANSWERS = {
    "recipients":       (200, 200, 200, 200, 403),
    "recipient_files":  (200, 403, 403, 403, 403),
    "recipient":        (200, 200, 200, 200, 403),
    "recipient_before": (301, 301, 301, 301, 301),
}  # fmt: skip


def test_the_table_has_every_address() -> None:
    names = {pattern.name for pattern in urls.urlpatterns}
    assert set(ANSWERS) == {name for name in names if "recipient" in str(name)}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_role_gets_its_answer(
    client: Client,
    request: pytest.FixtureRequest,
    sign_in: SignIn,
    preparer: User,
    name: str,
    role: str,
) -> None:
    key = {"recipient": registered.suggested(preparer).recipient, "recipient_before": 1}.get(name)
    address = reverse(f"governance:{name}", args=[key] if key else [])
    answer = sign_in(client, request.getfixturevalue(role)).get(address)
    assert answer.status_code == ANSWERS[name][ROLES.index(role)]


@pytest.mark.parametrize("address", ["/operations/accounts/", "/operations/accounts/1/", f"{LIST}1/"])
def test_earlier_addresses_lead_to_the_list(as_preparer: Client, address: str) -> None:
    answer = as_preparer.get(address, follow=True)
    assert answer.redirect_chain[-1][0].partition("?")[0] == LIST
    assert answer.status_code == 200


def test_the_list_shows_state_and_payments(as_preparer: Client, preparer: User, approver: User) -> None:
    registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    registered.suggested(preparer, "Diesel", number="1111112222")
    for days in (9, 3):
        aged(factories.prepared(preparer), days, Status.SUCCEEDED)
    factories.prepared(preparer)
    rows = as_preparer.get(LIST).context["rows"]
    assert [(version.title, version.state) for version, _ in rows] == [
        ("Diesel", "suggested"),
        ("Rent", "approved"),
    ]
    paid = rows[1][1]
    assert [(each.currency, each.count, each.amount) for each in paid.totals] == [("NGN", 2, 500_000)]
    assert (paid.last - paid.first).days == 6
    assert rows[0][1] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=rent", ["Rent"]),
        ("q=CHIDINMA", ["Rent"]),
        ("q=3456", ["Rent"]),
        ("q=ngozi.eze", ["Market"]),
        ("state=approved", ["Market", "Rent"]),
        ("type=user", ["Market"]),
        ("q=nothing", []),
    ],
)
def test_the_list_is_searched(
    as_preparer: Client, preparer: User, approver: User, query: str, found: list[str]
) -> None:
    registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    registered.agreed(registered.user(alias="Market"), preparer, approver)
    registered.suggested(preparer, "Diesel", number="1111112222", name="KOLA EZE")
    titles = [version.title for version, _ in as_preparer.get(f"{LIST}?{query}").context["rows"]]
    assert titles == found


def test_a_filter_that_makes_no_sense_is_reported(as_preparer: Client) -> None:
    assert as_preparer.get(f"{LIST}?state=lost").status_code == 422


def test_the_page_shows_versions_payments_and_what_waits(
    as_preparer: Client, as_approver: Client, preparer: User, approver: User, settings: Settings
) -> None:
    rent = registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    newest = registered.agreed(registered.changed(rent, alias="Office rent"), preparer, approver)
    payment = factories.prepared(preparer)
    settings.RECIPIENT_COOLING_HOURS = 24
    html = text_of(as_preparer.get(newest.get_absolute_url()))
    assert "<h1>Office rent</h1>" in html
    assert payment.reference in html
    assert html.count("Tunde Bello, Amara Okafor") == 2
    assert "can be paid from" in html
    assert f"?change=retire&amp;recipient={newest.recipient}" in html
    assert "change=retire" not in text_of(as_approver.get(newest.get_absolute_url()))
    factories.prepared_of_kind("recipient", registered.changed(newest, RecipientChange.RETIRE), preparer)
    html = text_of(as_preparer.get(newest.get_absolute_url()))
    assert "A change to this recipient is waiting for approval" in html
    assert "change=retire" not in html
    assert as_preparer.get(f"{LIST}{uuid.uuid4()}/").status_code == 404


def test_an_operation_names_its_recipient(as_preparer: Client, preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    assert "Add to recipients…" in text_of(as_preparer.get(operation.get_absolute_url()))
    rent = registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    html = text_of(as_preparer.get(operation.get_absolute_url()))
    assert f'Approved recipient <a href="{rent.get_absolute_url()}">' in html
    assert "Add to recipients…" not in html


def test_the_export_has_the_filters_of_the_list(as_preparer: Client, preparer: User) -> None:
    registered.suggested(preparer)
    html = text_of(as_preparer.get(f"{LIST}?state=suggested&cursor=x"))
    assert 'href="/reports/recipients.csv?state=suggested"' in html


def test_the_pages_keep_their_budgets_with_many_recipients(
    as_preparer: Client,
    preparer: User,
    approver: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    registered.many(preparer, approver, 300)
    for number in range(30):
        aged(factories.prepared(preparer, account_number=f"{number:010}"), 3, Status.SUCCEEDED)
    as_preparer.get(LIST)
    page = as_preparer.get(LIST).context["page"]
    for query in ("", f"?cursor={page.next_cursor}", "?q=holder+29&state=approved"):
        with django_assert_max_num_queries(6):
            answer = as_preparer.get(f"{LIST}{query}")
        assert len(gzip.compress(answer.content)) < 14 * 1024
    with django_assert_max_num_queries(8):
        answer = as_preparer.get(page.rows[0].get_absolute_url())
    assert len(gzip.compress(answer.content)) < 14 * 1024
