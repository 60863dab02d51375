"""Webhooks that should have arrived and have not are reported, and nothing else is."""

from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core.models import CachedReadRow
from backoffice.ledger.callback_url import _CALLBACK_URL
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.webhooks.deliveries import missing_deliveries
from backoffice.webhooks.models import Delivery, DeliveryTestKey
from backoffice.webhooks.processing import TEST_EVENT, receive_delivery
from payments_gateway.webhooks import self_signed_webhook
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.conftest import provider as provider
from tests.operations.kinds.samples import SAMPLES
from tests.operations.outcome.steps import confirmed
from tests.operations.provider_list import NAMED, record, sent, shows
from tests.stub_provider import StubProvider
from tests.webhooks.conftest import UseKeys
from tests.webhooks.steps import SignIn, status_delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver", "ours")]
OURS = "https://office.example"


@pytest.fixture
def ours(settings: Settings) -> None:
    """The provider has reported our callback URL."""
    settings.PUBLIC_URL = OURS
    report_address(f"{OURS}/hooks/x/")


@pytest.fixture
def ended(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """One that the provider has executed."""
    shows(provider)
    operation = sent(provider, preparer, approver, NAMED)
    return confirmed(operation, provider, record("T-1"))


def report_address(address: str) -> None:
    """Let the provider have reported this callback URL just now."""
    _CALLBACK_URL.refresh(lambda: address)


def ago(hours: float) -> datetime:
    return timezone.now() - timedelta(hours=hours)


def close(operation: Operation, hours: float) -> None:
    """Let it have ended so long ago."""
    Operation.objects.filter(pk=operation.pk).update(closed_at=ago(hours))


def deliver(hours: float) -> None:
    """Let the provider have delivered so long ago, and the same have come again just now."""
    body = status_delivery()
    receive_delivery(body)
    Delivery.objects.update(received_at=ago(hours), valid_at=ago(hours))
    receive_delivery(body)


# Hours since something settled, hours since the last new delivery (None: never), and whether that is silence.
TABLE = [
    (25, None, True),
    (23, None, False),
    (25, 24.5, False),
    (25, 26.5, True),
    (25, 25.1, False),  # it ended because of that delivery
    (24 * 8, None, False),  # so long ago that nobody expects anything any more
]


@pytest.mark.parametrize(("settled", "delivered", "is_silent"), TABLE)
def test_a_settled_operation_without_a_delivery_is_missing_one_after_a_day(
    ended: Operation, settled: float, delivered: float | None, is_silent: bool
) -> None:
    close(ended, settled)
    if delivered is not None:
        deliver(delivered)
    found = missing_deliveries()
    assert (found is not None) is is_silent
    if found is not None:
        assert (found.last_at is None) is (delivered is None)


def test_a_delivery_refused_for_a_missing_key_counts_once_valid(ended: Operation, use_keys: UseKeys) -> None:
    close(ended, 25)
    use_keys("previous")
    body = status_delivery()
    receive_delivery(body)
    Delivery.objects.update(received_at=ago(48))
    assert missing_deliveries() is not None
    use_keys("current")
    receive_delivery(body)
    assert missing_deliveries() is None
    Delivery.objects.update(valid_at=ago(48))
    receive_delivery(body)
    assert missing_deliveries() is not None


def test_nothing_is_missing_if_the_callback_url_is_not_ours(ended: Operation) -> None:
    close(ended, 25)
    report_address("https://elsewhere.example/hooks/")
    assert missing_deliveries() is None


def test_nothing_is_missing_without_a_receiver(ended: Operation, settings: Settings) -> None:
    close(ended, 25)
    settings.WEBHOOK_SECRET = ""
    assert missing_deliveries() is None


def test_nothing_is_missing_from_before_the_callback_url_was_set(
    ended: Operation, administrator: User, approver: User, provider: StubProvider
) -> None:
    close(ended, 30)
    payload = SAMPLES["callback_url"].model_copy(update={"url": f"{OURS}/hooks/x/"})
    change = factories.prepared_of_kind("callback_url", payload, administrator)
    with lifted(connection):
        Operation.objects.filter(pk=change.pk).update(status=Status.SUCCEEDED, closed_at=ago(29.5))
    assert missing_deliveries() is None
    Operation.objects.filter(pk=change.pk).update(closed_at=ago(40))
    assert missing_deliveries() is not None


def test_missing_deliveries_are_shown_on_the_pages(
    ended: Operation, client: Client, sign_in: SignIn, approver: User
) -> None:
    sign_in(client, approver)
    close(ended, 25)
    assert "No valid webhook was ever received" in client.get("/settings/webhooks/").content.decode()
    assert ">No recent valid webhooks</a>" in client.get("/").content.decode()
    deliver(1)
    cache.clear()  # a minute later
    for address, text in (("/settings/webhooks/", "No valid webhook was"), ("/", "No recent valid webhooks")):
        assert text not in client.get(address).content.decode()


def test_the_alarm_names_the_reported_callback_url_and_possible_causes(
    ended: Operation, client: Client, sign_in: SignIn, approver: User
) -> None:
    close(ended, 25)
    html = sign_in(client, approver).get("/settings/webhooks/").content.decode()
    alarm = html.partition('role="alert"')[2].partition("</div>")[0]
    assert "Callback URL as the provider reported it" in alarm
    assert f"<code>{OURS}/hooks/x/</code>" in alarm
    assert alarm.count("<li>") == 4


def test_the_alarm_does_not_show_the_secret_of_the_callback_url(
    ended: Operation, client: Client, sign_in: SignIn, auditor: User, settings: Settings
) -> None:
    close(ended, 25)
    report_address(f"{OURS}/hooks/{settings.WEBHOOK_SECRET}/")
    html = sign_in(client, auditor).get("/settings/webhooks/").content.decode()
    assert f"<code>{OURS}/hooks/***/</code>" in html.partition('role="alert"')[2]
    assert settings.WEBHOOK_SECRET not in html


def test_the_alarm_says_that_the_provider_has_not_reported_the_callback_url(
    ended: Operation, administrator: User
) -> None:
    close(ended, 25)
    CachedReadRow.objects.all().delete()
    payload = SAMPLES["callback_url"].model_copy(update={"url": f"{OURS}/hooks/y/"})
    change = factories.prepared_of_kind("callback_url", payload, administrator)
    with lifted(connection):
        Operation.objects.filter(pk=change.pk).update(status=Status.SUCCEEDED, closed_at=ago(40))
    found = missing_deliveries()
    assert found is not None
    assert (found.address, found.reported_at) == (f"{OURS}/hooks/y/", None)


def test_a_test_delivery_does_not_end_the_alarm(ended: Operation) -> None:
    close(ended, 25)
    signed = self_signed_webhook(TEST_EVENT, {"testId": "1"})
    DeliveryTestKey.objects.create(pk=1, public_pem=signed.public_pem, made_at=ago(0))
    assert receive_delivery(signed.body) == "test"
    assert missing_deliveries() is not None
