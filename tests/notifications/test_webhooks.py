"""Signed webhooks to the configured addresses: how they are signed, and what is not followed, read or connected to."""

import hmac
import json
import time

import pytest
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.notifications.channels import webhook as channel
from backoffice.notifications.delivery import deliver_webhooks_due
from backoffice.notifications.models import Channel, Message
from backoffice.notifications.recording.audit_feed import record_events_due
from tests import factories
from tests.notifications.receivers import HttpReceiver, http_receiver
from tests.notifications.steps import make_due

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(preparer: User, webhook: HttpReceiver) -> Message:
    factories.prepared(preparer)
    record_events_due()
    return Message.objects.get(channel=Channel.WEBHOOK)


def problem() -> dict[str, object]:
    return dict(Message.objects.get(channel=Channel.WEBHOOK).problem)


def test_a_receiver_can_verify_the_signature(
    waiting: Message, webhook: HttpReceiver, settings: Settings
) -> None:
    assert deliver_webhooks_due() == 1
    (body,), (headers,) = webhook.bodies, webhook.headers
    signed = headers["Countersign-Timestamp"].encode() + b"." + body
    expected = hmac.digest(settings.NOTIFY_WEBHOOK_SECRET.encode(), signed, "sha256").hex()
    assert headers["Countersign-Signature"] == f"v1={expected}"
    assert abs(int(headers["Countersign-Timestamp"]) - time.time()) < 60
    assert settings.NOTIFY_WEBHOOK_SECRET not in str(headers)


def test_every_try_has_the_same_id(waiting: Message, webhook: HttpReceiver) -> None:
    webhook.status = 503
    deliver_webhooks_due()
    assert problem() == {"code": "status", "status": 503}
    webhook.status = 204
    make_due()
    deliver_webhooks_due()
    first, second = webhook.headers
    assert first["Countersign-Id"] == second["Countersign-Id"]
    assert json.loads(webhook.bodies[0])["events"] == json.loads(webhook.bodies[1])["events"]


def test_a_redirect_is_not_followed(waiting: Message, webhook: HttpReceiver) -> None:
    with http_receiver() as elsewhere:
        webhook.status, webhook.location = 307, elsewhere.url
        deliver_webhooks_due()
        assert elsewhere.bodies == []
    assert problem() == {"code": "status", "status": 307}


def test_a_slow_receiver_is_left_in_time(
    waiting: Message, webhook: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "SECONDS", 0.3)
    webhook.is_slow = True
    deliver_webhooks_due()
    assert problem() == {"code": "timed_out"}


def test_a_large_answer_is_not_read(waiting: Message, webhook: HttpReceiver) -> None:
    webhook.answer = b"x" * 5_000_000
    assert deliver_webhooks_due() == 1


@pytest.mark.parametrize(
    "address", ["https://10.0.0.1/x", "https://169.254.169.254/latest", "https://192.168.1.1:8443/"]
)
def test_a_private_address_is_refused(
    preparer: User, webhook: HttpReceiver, settings: Settings, address: str
) -> None:
    settings.NOTIFY_WEBHOOKS = [address]
    factories.prepared(preparer)
    record_events_due()
    before = time.monotonic()
    deliver_webhooks_due()
    assert time.monotonic() - before < 2  # nothing waited for a connection
    assert problem()["code"] == "not_reached"


def test_many_events_are_all_posted(preparer: User, webhook: HttpReceiver) -> None:
    for _ in range(60):
        factories.prepared_to_another_account(preparer)
    record_events_due()
    assert (deliver_webhooks_due(), deliver_webhooks_due(), deliver_webhooks_due()) == (50, 10, 0)
    assert [len(json.loads(body)["events"]) for body in webhook.bodies] == [50, 10]
