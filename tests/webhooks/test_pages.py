"""What people see of deliveries, who sees it, and the status check because of one."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.models.operations import Attempt
from backoffice.webhooks import urls
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.processing import receive_delivery
from tests import factories
from tests.ledger import stored_transactions
from tests.operations.conftest import provider as provider
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import NAMED, record, sent, shows
from tests.payments_gateway.vectors.make_vectors import delivery
from tests.requirements import opened_by
from tests.stub_provider import StubProvider
from tests.webhooks.steps import forged, only_delivery, status_delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]
SignIn = Callable[[Client, User], Client]
PAGE = "/settings/webhooks/"

# What each role is answered with; the receiver itself is everybody's, and has tests of its own.
#               method  preparer approver auditor administrator outsider
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
ANSWERS = {
    "deliveries": ("get",  200, 200, 200, 200, 403),
    "delivery":   ("get",  200, 200, 200, 200, 403),
    "check_again": ("post", 302, 302, 403, 302, 403),
}  # fmt: skip


def address_of(name: str) -> str:
    return reverse(f"webhooks:{name}", args=[] if name == "deliveries" else [only_delivery().pk])


@pytest.fixture
def reader(client: Client, sign_in: SignIn, approver: User) -> Client:
    return sign_in(client, approver)


def text(client: Client, address: str = PAGE) -> str:
    """The page in words, one space between them."""
    return re.sub(r"\s+", " ", client.get(address).content.decode())


def test_access_table_covers_every_url() -> None:
    assert {*ANSWERS, "receive"} == {pattern.name for pattern in urls.urlpatterns}


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="preparer"))
@pytest.mark.parametrize("name", ANSWERS)
def test_each_role_has_the_access_listed(
    client: Client, sign_in: SignIn, request: pytest.FixtureRequest, name: str, role: str
) -> None:
    receive_delivery(status_delivery())
    method, *answers = ANSWERS[name]
    sign_in(client, request.getfixturevalue(role))
    assert getattr(client, str(method))(address_of(name)).status_code == answers[ROLES.index(role)]


def test_the_page_takes_at_most_six_queries(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://office.example"
    for number in range(30):
        receive_delivery(status_delivery(f"T-{number}"))
    reader.get(PAGE)
    with django_assert_max_num_queries(6):
        assert reader.get(PAGE).status_code == 200


def test_a_delivery_is_listed_with_its_verdict_and_count(reader: Client) -> None:
    body = status_delivery("T-1")
    for _ in range(3):
        receive_delivery(body)
    receive_delivery(forged())
    html = text(reader)
    assert '<span class="badge good">Valid</span>' in html
    assert '<span class="badge bad">Invalid</span>' in html
    assert '<td class="num" data-label="Deliveries">3</td>' in html
    assert html.index("Invalid") < html.index(">Valid<")


def test_a_delivery_links_to_operation_and_transaction(
    reader: Client, provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent(provider, preparer, approver, NAMED)
    shows(provider, record("T-1", "processing"))
    assert Attempt.objects.get().provider_transaction_id == "T-1"
    one = stored_transactions.stored(transaction_id="T-1")
    receive_delivery(status_delivery("T-1"))
    for address in (PAGE, address_of("delivery")):
        html = text(reader, address)
        assert f'href="/operations/{operation.pk}/">{operation.reference}</a>' in html
        assert f'href="/transactions/{one.pk}/">T-1</a>' in html


def test_a_payment_is_found_by_its_reference(reader: Client, preparer: User) -> None:
    operation = factories.prepared_of_kind("payment", SAMPLES["payment"], preparer)
    reference = operation.payload["reference"].encode()
    receive_delivery(delivery(b'{"reference":"%s","state":"paid"}' % reference, event=b"Payment updated"))
    assert f">{operation.reference}</a>" in text(reader, address_of("delivery"))


def test_deliveries_are_paginated(reader: Client) -> None:
    for number in range(51):
        receive_delivery(status_delivery(f"T-{number}"))
    first = reader.get(PAGE).content.decode()
    assert first.count('class="row"') == 50
    (older,) = re.findall(r'href="(\?cursor=[^"]+)" rel="next"', first)
    assert reader.get(f"{PAGE}{older}").content.decode().count('class="row"') == 1


def test_the_body_is_shown_escaped_as_received(reader: Client) -> None:
    receive_delivery(b'<script>alert(1)</script>\xff\x00{"event"')
    html = reader.get(address_of("delivery")).content.decode()
    assert r"&lt;script&gt;alert(1)&lt;/script&gt;\xff\x00{&quot;event&quot;" in html


def test_requesting_a_status_check_is_audited_and_enqueued(reader: Client, approver: User) -> None:
    receive_delivery(forged())
    assert "It triggered no status check. </p>" in text(reader, address_of("delivery"))
    answer = reader.post(address_of("check_again"))
    assert (answer.status_code, answer["Location"]) == (302, address_of("delivery"))
    assert only_delivery().check_due_at is not None
    assert "It triggered no status check; a person requested one." in text(reader, address_of("delivery"))
    Delivery.objects.update(check_due_at=None, checked_at=timezone.now())
    assert "It triggered no status check; a person requested one." in text(reader, address_of("delivery"))
    entry = Entry.objects.get(action="delivery.rechecked")
    assert (entry.actor, entry.target_url) == (approver, address_of("delivery"))


def test_requesting_a_status_check_needs_a_post(reader: Client) -> None:
    receive_delivery(status_delivery())
    assert reader.get(address_of("check_again")).status_code == 405


def test_readers_are_not_offered_a_status_check(client: Client, sign_in: SignIn, auditor: User) -> None:
    receive_delivery(status_delivery())
    assert "Check status" not in text(sign_in(client, auditor), address_of("delivery"))


@pytest.mark.parametrize(
    ("secret", "keys", "message"),
    [
        ("", "", "Webhooks are not received."),
        ("s" * 32, "", "public key is missing"),
        ("s" * 32, "/nowhere", "/nowhere cannot be read"),
    ],
)
def test_the_page_shows_missing_configuration(
    reader: Client, settings: Settings, secret: str, keys: str, message: str
) -> None:
    settings.WEBHOOK_SECRET, settings.WEBHOOK_KEYS = secret, keys
    assert message in text(reader)


def test_the_page_shows_the_key_and_the_last_valid_delivery(reader: Client) -> None:
    assert "None yet" in text(reader)
    receive_delivery(status_delivery())
    assert only_delivery().key in text(reader)
    assert "None yet" not in text(reader)
    assert Delivery.objects.count() == 1
