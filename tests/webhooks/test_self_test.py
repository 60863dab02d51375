"""A test delivery travels over real HTTP to our own callback URL, is marked, and starts nothing."""

import ssl
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core.leases import acquire_lease
from backoffice.webhooks import self_test
from backoffice.webhooks.deliveries import last_valid_at
from backoffice.webhooks.models import Delivery, DeliveryTestKey
from backoffice.webhooks.processing import (
    TEST_EVENT,
    process_again,
    process_due_deliveries,
    receive_delivery,
)
from backoffice.webhooks.self_test import SelfTestReport, SelfTestResult, send_test_delivery
from payments_gateway.webhooks import self_signed_webhook
from tests.operations.conftest import provider as provider
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Stub
from tests.payments_gateway.transport.test_tls import certificate as certificate
from tests.payments_gateway.transport.test_tls import tls as tls
from tests.payments_gateway.vectors.make_vectors import delivery
from tests.stub_provider import StubProvider
from tests.webhooks.conftest import UseKeys
from tests.webhooks.steps import ADDRESS, SECRET, SignIn, only_delivery, status_delivery
from tools.processes import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]


@pytest.fixture
def public(settings: Settings, live_server: Any) -> str:
    """The public address, at which this installation answers."""
    settings.PUBLIC_URL = live_server.url
    return str(live_server.url)


def sent_to(address: str, settings: Settings, actor: User) -> SelfTestReport:
    settings.PUBLIC_URL = address
    return send_test_delivery(actor=actor)


def test_a_test_delivery_arrives_over_http_and_is_marked(public: str, administrator: User) -> None:
    report = send_test_delivery(actor=administrator)
    stored = only_delivery()
    assert (report.result, report.delivery) == (SelfTestResult.RECEIVED, stored)
    assert (stored.verdict, stored.event, stored.response_status) == ("test", TEST_EVENT, 200)
    assert stored.headers["User-Agent"] == "Countersign test delivery"
    assert stored.problem == ""


def test_a_certificate_that_is_not_publicly_trusted_is_reported(
    administrator: User, settings: Settings, tls: ssl.SSLContext
) -> None:
    with Stub(stub.answer(200, {}), tls=tls) as server:
        report = sent_to(f"https://127.0.0.1:{server.port}", settings, administrator)
    assert report.result == SelfTestResult.NOT_REACHED
    assert "certificate" in report.sentence
    assert server.requests == []


def test_a_test_delivery_needs_no_key_of_the_provider(
    public: str, administrator: User, settings: Settings
) -> None:
    settings.WEBHOOK_KEYS = ""
    assert send_test_delivery(actor=administrator).result == SelfTestResult.RECEIVED
    assert only_delivery().is_test


def test_a_test_delivery_starts_no_reads_and_is_no_sign_of_the_provider(
    public: str, administrator: User, provider: StubProvider
) -> None:
    send_test_delivery(actor=administrator)
    process_again(only_delivery().pk, actor=administrator)
    assert (only_delivery().check_due_at, process_due_deliveries()) == (None, 0)
    assert (provider.keys_shown, last_valid_at()) == ([], None)
    assert not Entry.objects.filter(action="delivery.rechecked").exists()


def test_a_test_delivery_is_recorded_without_the_secret(public: str, administrator: User) -> None:
    send_test_delivery(actor=administrator)
    entry = Entry.objects.get(action="delivery.test_sent")
    assert (entry.actor, entry.target_label) == (administrator, public)
    assert SECRET not in str(entry.members())


def test_only_the_key_of_the_last_test_is_recognised(public: str, administrator: User) -> None:
    send_test_delivery(actor=administrator)
    earlier = self_signed_webhook(TEST_EVENT, {"testId": "1"})
    assert receive_delivery(earlier.body) == "invalid"
    DeliveryTestKey.objects.update(public_pem=earlier.public_pem)
    assert receive_delivery(self_signed_webhook(TEST_EVENT, {"testId": "2"}).body) == "invalid"
    assert receive_delivery(self_signed_webhook("Transaction updated", {"transactionId": "T-1"}).body) == (
        "invalid"
    )


def test_what_the_provider_signs_is_never_a_test(use_keys: UseKeys) -> None:
    assert receive_delivery(delivery(event=TEST_EVENT.encode())) == "valid"


def test_the_test_key_makes_nothing_valid(administrator: User) -> None:
    """Whoever changed the stored key could only mark deliveries as tests."""
    signed = self_signed_webhook("Transaction updated", {"transactionId": "T-1", "note": TEST_EVENT})
    DeliveryTestKey.objects.create(pk=1, public_pem=signed.public_pem, made_at="2026-11-20T10:00:00Z")
    assert receive_delivery(signed.body) == "test"
    assert (only_delivery().valid_at, only_delivery().check_due_at) == (None, None)


def test_nothing_is_sent_without_a_public_address(administrator: User, settings: Settings) -> None:
    assert sent_to("", settings, administrator).result == SelfTestResult.NO_ADDRESS
    settings.WEBHOOK_SECRET = "short"
    assert send_test_delivery(actor=administrator).result == SelfTestResult.OFF
    assert not Entry.objects.filter(action="delivery.test_sent").exists()


def test_one_test_runs_at_a_time(public: str, administrator: User) -> None:
    with acquire_lease("webhook test", timedelta(minutes=1)) or pytest.fail("is free"):
        assert send_test_delivery(actor=administrator).result == SelfTestResult.BUSY
    assert send_test_delivery(actor=administrator).result == SelfTestResult.RECEIVED


def test_an_address_that_cannot_be_reached_is_reported(administrator: User, settings: Settings) -> None:
    for address in (f"http://127.0.0.1:{free_port()}", "nonsense"):
        report = sent_to(address, settings, administrator)
        assert report.result == SelfTestResult.NOT_REACHED
        assert f"{address} could not be reached" in report.sentence


def test_a_redirect_is_not_followed(administrator: User, settings: Settings, live_server: Any) -> None:
    moved = stub.answer(307, {}, (f"Location: {live_server.url}{ADDRESS}",))
    with Stub(moved) as elsewhere:
        report = sent_to(elsewhere.url, settings, administrator)
    assert (report.result, report.parameters["status"]) == (SelfTestResult.REFUSED, 307)
    assert [request.target for request in elsewhere.requests] == [f"/v2{ADDRESS}"]
    assert not Delivery.objects.exists()


def test_a_delivery_that_another_installation_accepts_is_reported(
    administrator: User, settings: Settings
) -> None:
    with Stub(stub.answer(200, {})) as elsewhere:
        report = sent_to(elsewhere.url, settings, administrator)
    assert report.result == SelfTestResult.ELSEWHERE
    assert "this installation did not receive it" in report.sentence


def test_a_slow_address_is_given_up(
    administrator: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_test, "TIMEOUT", 0.3)
    with Stub(stub.silent) as elsewhere:
        assert sent_to(elsewhere.url, settings, administrator).result == SelfTestResult.NO_RESPONSE


def test_an_administrator_sends_a_test_from_the_page(
    public: str, client: Client, sign_in: SignIn, administrator: User
) -> None:
    sign_in(client, administrator)
    assert "Send test delivery" in client.get("/settings/webhooks/").content.decode()
    answer = client.post("/settings/webhooks/test/", follow=True)
    assert answer.redirect_chain == [(only_delivery().get_absolute_url(), 302)]
    html = answer.content.decode()
    assert "The test delivery was received. Response: status 200 after" in html
    assert '<span class="badge info">Test</span>' in html
    assert "Process again" not in html
    again = client.post(f"{only_delivery().get_absolute_url()}process-again/", follow=True)
    assert "Not processed: a test delivery triggers no status check." in again.content.decode()


def test_a_failed_test_is_explained_on_the_page(
    client: Client, sign_in: SignIn, administrator: User, settings: Settings
) -> None:
    settings.PUBLIC_URL = ""
    answer = sign_in(client, administrator).post("/settings/webhooks/test/", follow=True)
    assert "the public address is not configured" in answer.content.decode()


def test_only_administrators_are_offered_a_test(client: Client, sign_in: SignIn, approver: User) -> None:
    receive_delivery(status_delivery())
    assert "Send test delivery" not in sign_in(client, approver).get("/settings/webhooks/").content.decode()
