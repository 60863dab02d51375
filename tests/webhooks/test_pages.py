"""What people see of deliveries, who sees it, and the status check because of one."""

import re
from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.cached_reads import CachedValue
from backoffice.ledger.callback_url import callback_url_context
from backoffice.operations.kinds.callback_url import CallbackUrlPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt
from backoffice.operations.outcome import schedule
from backoffice.webhooks import urls
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.processing import _schedule_checks, receive_delivery
from tests import factories
from tests.accounts.steps import age_second_factor
from tests.ledger import stored_transactions
from tests.operations.conftest import provider as provider
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import NAMED, NAMELESS, record, sent, shows
from tests.payments_gateway.vectors.make_vectors import delivery
from tests.requirements import opened_by
from tests.stub_provider import StubProvider
from tests.webhooks.steps import SECRET, SignIn, deliver, forged, only_delivery, status_delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]
PAGE = "/settings/webhooks/"

# What each role is answered with; the receiver itself is everybody's, and has tests of its own.
#               method  preparer approver auditor administrator outsider
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
ANSWERS = {
    "deliveries": ("get",  200, 200, 200, 200, 403),
    "delivery":   ("get",  200, 200, 200, 200, 403),
    "process_again": ("post", 302, 302, 403, 302, 403),
    "own_address": ("get", 403, 403, 403, 200, 403),
    "send_test":  ("post", 403, 403, 403, 302, 403),
}  # fmt: skip


def address_of(name: str) -> str:
    has_pk = name in {"delivery", "process_again"}
    return reverse(f"webhooks:{name}", args=[only_delivery().pk] if has_pk else [])


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
    assert html.index(">Invalid</span>") < html.index(">Valid</span>")


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
    answer = reader.post(address_of("process_again"))
    assert (answer.status_code, answer["Location"]) == (302, address_of("delivery"))
    assert only_delivery().check_due_at is not None
    assert "It triggered no status check; a person requested one." in text(reader, address_of("delivery"))
    Delivery.objects.update(check_due_at=None, checked_at=timezone.now())
    assert "It triggered no status check; a person requested one." in text(reader, address_of("delivery"))
    entry = Entry.objects.get(action="delivery.rechecked")
    assert (entry.actor, entry.target_url) == (approver, address_of("delivery"))


def test_requesting_a_status_check_needs_a_post(reader: Client) -> None:
    receive_delivery(status_delivery())
    assert reader.get(address_of("process_again")).status_code == 405


def test_readers_are_not_offered_a_status_check(client: Client, sign_in: SignIn, auditor: User) -> None:
    receive_delivery(status_delivery())
    assert "Process again" not in text(sign_in(client, auditor), address_of("delivery"))


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


def test_the_delivery_page_takes_at_most_six_queries(
    reader: Client,
    provider: StubProvider,
    preparer: User,
    approver: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    sent(provider, preparer, approver, NAMED)
    receive_delivery(status_delivery("T-1"))
    _schedule_checks()
    address = address_of("delivery")
    reader.get(address)
    with django_assert_max_num_queries(6):
        reader.get(address)


def test_the_page_shows_headers_and_response(reader: Client) -> None:
    deliver(status_delivery(), HTTP_VIA="<b>odd</b>", HTTP_AUTHORIZATION="Bearer canary")
    html = text(reader, address_of("delivery"))
    assert '<dt>Via</dt><dd class="mono wrap">&lt;b&gt;odd&lt;/b&gt;</dd>' in html
    assert '<dt>Authorization</dt><dd class="mono wrap"><span class="quiet">Not stored</span></dd>' in html
    assert "canary" not in html
    assert re.search(r"<dt>Response</dt><dd>Status 200 in \d+ ms</dd>", html)


def test_a_delivery_from_before_headers_were_stored_is_shown(reader: Client) -> None:
    receive_delivery(status_delivery())
    Delivery.objects.update(headers={}, response_status=None, response_ms=None)
    assert text(reader, address_of("delivery")).count("Not recorded") == 2


def test_the_page_shows_what_a_delivery_started_with_links(
    reader: Client, provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent(provider, preparer, approver, NAMED)
    receive_delivery(status_delivery("T-1"))
    assert "<p>Due within seconds</p>" in text(reader, address_of("delivery"))
    _schedule_checks()
    html = text(reader, address_of("delivery"))
    assert "Sync of the provider&#x27;s transactions" in html
    link = f'<a class="mono" href="/operations/{operation.pk}/">{operation.reference}</a>'
    assert f"Immediate status check of the operation with this transaction: {link}" in html


def test_a_delivery_without_stored_runs_says_why(reader: Client) -> None:
    receive_delivery(forged())
    assert "<p>Not triggered</p>" in text(reader, address_of("delivery"))
    Delivery.objects.update(checked_at=timezone.now())  # by a release that stored no runs
    assert "<p>Not recorded</p>" in text(reader, address_of("delivery"))


def test_a_list_of_operations_that_is_cut_says_so(
    reader: Client,
    provider: StubProvider,
    preparer: User,
    approver: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = sent(provider, preparer, approver, NAMELESS)
    newer = sent(provider, preparer, approver, NAMELESS, currency="USD", amount=Decimal(100))
    receive_delivery(status_delivery("of no operation"))
    _schedule_checks()
    html = text(reader, address_of("delivery"))
    assert "because the delivery may be about any of them: <a" in html
    assert html.count(f"/operations/{older.pk}/") == html.count(f"/operations/{newer.pk}/") == 1
    monkeypatch.setattr(schedule, "UNMATCHED_LISTED", 1)
    Delivery.objects.update(check_due_at=timezone.now(), started=[])
    _schedule_checks()
    html = text(reader, address_of("delivery"))
    assert "because the delivery may be about any of them. The newest 1 of 2: <a" in html
    assert f"/operations/{newer.pk}/" in html
    assert f"/operations/{older.pk}/" not in html


LATER, EARLIER = "2026-11-20T10:00:05Z", "2026-11-20T10:00:00Z"


@pytest.mark.parametrize(
    ("first", "second", "is_marked"),
    [
        (status_delivery("T-1", updated_at=LATER), status_delivery("T-1", updated_at=EARLIER), True),
        (status_delivery("T-1", updated_at=EARLIER), status_delivery("T-1", updated_at=LATER), False),
        (status_delivery("T-1", updated_at=LATER), status_delivery("T-1", updated_at=LATER), False),
        (status_delivery("T-2", updated_at=LATER), status_delivery("T-1", updated_at=EARLIER), False),
        (status_delivery("T-1", updated_at=LATER), status_delivery("T-1"), False),
    ],
    ids=["older", "newer", "same time", "other transaction", "no time"],
)
def test_an_older_state_that_arrives_later_is_marked(
    reader: Client, first: bytes, second: bytes, is_marked: bool
) -> None:
    receive_delivery(first)
    receive_delivery(second)
    marks = re.findall('class="badge warn">Out of order<', text(reader))
    assert len(marks) == is_marked
    page = text(reader, Delivery.objects.order_by("-pk")[0].get_absolute_url())
    assert ("reports a later state of the transaction" in page) is is_marked


def payment_delivery(updated_at: str, reference: str = "INV-77", event: bytes = b"Payment updated") -> bytes:
    members = f'{{"reference":"{reference}","state":"paid","updatedAt":"{updated_at}"}}'
    return delivery(members.encode(), event=event)


@pytest.mark.parametrize(
    ("first", "second", "is_marked"),
    [
        (payment_delivery(LATER), payment_delivery(EARLIER, event=b"Payment created"), True),
        (payment_delivery(EARLIER), payment_delivery(LATER), False),
        (payment_delivery(LATER, "INV-78"), payment_delivery(EARLIER), False),
        (payment_delivery(LATER), payment_delivery("soon"), False),
        (payment_delivery(LATER), status_delivery("T-1", updated_at=EARLIER), False),
    ],
    ids=["older", "newer", "other payment", "no time", "a transaction"],
)
def test_an_older_state_of_a_payment_that_arrives_later_is_marked(
    reader: Client, first: bytes, second: bytes, is_marked: bool
) -> None:
    receive_delivery(first)
    receive_delivery(second)
    assert text(reader).count('class="badge warn">Out of order<') == is_marked
    page = text(reader, Delivery.objects.order_by("-pk")[0].get_absolute_url())
    assert ("reports a later state of the payment" in page) is is_marked
    assert ('?subject=INV-77">View deliveries of this payment</a>' in page) is is_marked


def test_a_transaction_with_the_reference_of_a_payment_is_not_compared_with_it(reader: Client) -> None:
    receive_delivery(payment_delivery(LATER))
    receive_delivery(
        delivery(
            b'{"transactionId":"T-1","currency":"NGN","type":"withdrawal","status":"failed","amount":1,'
            b'"reference":"INV-77","updatedAt":"%s"}' % EARLIER.encode()
        )
    )
    assert set(Delivery.objects.values_list("reference", "verdict")) == {("INV-77", "valid")}
    assert "Out of order" not in text(reader)


def test_a_forged_delivery_puts_no_mark_on_others(reader: Client) -> None:
    later = status_delivery("T-1", updated_at=LATER)
    receive_delivery(later.replace(b"fullfiled", b"failed"))
    receive_delivery(status_delivery("T-1", updated_at=EARLIER))
    assert Delivery.objects.filter(verdict="invalid", transaction_id="T-1").exists()
    assert "Out of order" not in text(reader)


def test_deliveries_are_filtered_by_event_verdict_time_and_id(reader: Client) -> None:
    receive_delivery(status_delivery("T-1"))
    receive_delivery(delivery(b'{"reference":"INV-77","state":"paid"}', event=b"Payment updated"))
    receive_delivery(forged())
    first, payment, invalid = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk=first.pk).update(received_at=timezone.now() - timedelta(days=40))

    def found(query: str) -> set[int]:
        html = text(reader, f"{PAGE}?{query}")
        return {int(pk) for pk in re.findall(r'class="row" href="/settings/webhooks/(\d+)/"', html)}

    assert found("") == {first.pk, payment.pk, invalid.pk}
    assert found("verdict=invalid") == {invalid.pk}
    assert found("event=payment+UPDATED") == {payment.pk}
    assert found("subject=T-1") == {first.pk}
    assert found("subject=T-") == set()
    assert found("subject=INV-77") == {payment.pk}
    assert found(f"subject={invalid.digest[:8].upper()}") == {invalid.pk}
    assert found(f"subject={invalid.digest}") == {invalid.pk}
    assert found(f"subject={invalid.digest[:7]}") == set()
    today = timezone.localdate(payment.received_at, ZoneInfo("Africa/Lagos"))  # the reader's zone
    assert found(f"since={today}&until={today}") == {payment.pk, invalid.pk}
    assert found(f"until={today - timedelta(days=30)}&verdict=valid") == {first.pk}
    csv = reverse("reports:csv", args=["webhook-deliveries"])
    assert f'href="{csv}?verdict=invalid"' in text(reader, f"{PAGE}?verdict=invalid")


def test_an_empty_selection_and_a_wrong_filter_are_explained(reader: Client) -> None:
    receive_delivery(status_delivery())
    assert "No deliveries match these filters" in text(reader, f"{PAGE}?verdict=test")
    answer = reader.get(f"{PAGE}?verdict=nonsense")
    assert answer.status_code == 422
    assert "No results until this filter is corrected." in answer.content.decode()


def test_the_secret_of_the_callback_url_is_on_its_own_page_only(
    client: Client, sign_in: SignIn, administrator: User, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://countersign.example"
    own = f"{settings.PUBLIC_URL}/hooks/{SECRET}/"
    stored = CachedValue(value=own, read_at=timezone.now())
    assert SECRET not in str(callback_url_context(stored)["shown_url"])
    payload = CallbackUrlPayload(url=own, previous=own)
    kind = KINDS["callback_url"]
    assert SECRET not in f"{kind.sentence(payload)} {kind.facts(payload)} {kind.initial(payload)}"

    sign_in(client, administrator)
    assert own in text(client, reverse("webhooks:own_address"))
    entry = Entry.objects.get()
    assert (entry.action, entry.actor) == (Action.WEBHOOK_ADDRESS_SHOWN, administrator)
    assert SECRET not in str(list(Entry.objects.values()))


def test_the_secret_of_the_callback_url_needs_a_fresh_second_factor(
    client: Client, sign_in: SignIn, administrator: User
) -> None:
    age_second_factor(sign_in(client, administrator), minutes=6)
    answer = client.get(reverse("webhooks:own_address"))
    assert answer["Location"].startswith(reverse("accounts:second_factor"))
    assert not Entry.objects.exists()
