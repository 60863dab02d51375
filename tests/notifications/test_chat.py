"""Chat and push channels: which URLs are accepted, where they lead, and how failures are reported."""

import ipaddress
import json
import threading

import pytest
import requests
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.notifications.channels import chat
from backoffice.notifications.channels.chat import ChatUrlError, chat_service
from backoffice.notifications.channels.network import (
    AddressRefusedError,
    connections_to,
    is_listed,
    is_public,
    names_of,
)
from backoffice.notifications.delivery import deliver_chat_due
from backoffice.notifications.models import Channel, ChatChannel, Message
from backoffice.notifications.preferences import save_chat_channel
from backoffice.notifications.recording.audit_feed import record_events_due
from tests import factories
from tests.notifications.receivers import HttpReceiver, http_receiver
from tests.notifications.steps import make_due

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(preparer: User, approver: User, chat_url: str) -> None:
    save_chat_channel(approver, chat_url)
    factories.prepared(preparer)
    record_events_due()
    Message.objects.exclude(channel=Channel.CHAT, notice="waits").delete()


def problem() -> str:
    return str(Message.objects.get().problem["code"])


def test_a_message_arrives_with_reference_and_link(waiting: None, receiver: HttpReceiver) -> None:
    assert deliver_chat_due() == 1
    (body,) = receiver.bodies
    message = json.loads(body)
    assert "Waits for your decision (Withdrawal)" in message["message"]
    assert "https://office.example/operations/" in message["message"]
    assert "250,000" not in message["title"]


def test_the_url_is_stored_encrypted(approver: User, chat_url: str) -> None:
    save_chat_channel(approver, chat_url)
    own = ChatChannel.objects.get()
    assert b"a-token" not in bytes(own.encrypted_url)
    assert own.decrypted() == chat_url


def test_a_refusal_is_tried_again(waiting: None, receiver: HttpReceiver) -> None:
    receiver.status = 500
    assert deliver_chat_due() == 0
    assert problem() == "refused"
    receiver.status = 200
    make_due()
    assert deliver_chat_due() == 1


def test_a_redirect_is_not_followed(waiting: None, receiver: HttpReceiver) -> None:
    with http_receiver() as elsewhere:
        receiver.status, receiver.location = 307, elsewhere.url
        deliver_chat_due()
        assert elsewhere.bodies == []
    assert problem() == "refused"


def test_a_slow_service_is_left_in_time(
    waiting: None, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "SECONDS", 0.3)
    receiver.is_slow = True
    deliver_chat_due()
    assert problem() == "timed_out"


def test_a_private_address_is_refused(
    preparer: User, approver: User, chat_url: str, receiver: HttpReceiver, settings: Settings
) -> None:
    """Also of a channel that was saved when it was allowed, and one that a public name resolves to."""
    save_chat_channel(approver, f"jsons://localhost:{receiver.port}/a-token")
    settings.NOTIFY_PRIVATE_ADDRESSES = False
    factories.prepared(preparer)
    record_events_due()
    deliver_chat_due()
    assert receiver.bodies == []
    assert Message.objects.filter(channel=Channel.CHAT, notice="waits").get().tries == 1


def test_a_connection_is_checked_where_it_is_made(receiver: HttpReceiver) -> None:
    with connections_to(is_public), pytest.raises(requests.ConnectionError) as refused:
        requests.post(receiver.url, timeout=5)
    assert "not allowed" in str(refused.value)
    assert receiver.bodies == []
    requests.post(receiver.url, data=b"{}", timeout=5)  # outside the block
    with connections_to(is_public):
        other = threading.Thread(target=lambda: requests.post(receiver.url, data=b"{}", timeout=5))
        other.start()  # nor in another thread
        other.join(10)
    assert len(receiver.bodies) == 2
    assert issubclass(AddressRefusedError, OSError)


def test_a_persons_own_channel_is_at_a_listed_host(approver: User, chat_url: str, settings: Settings) -> None:
    settings.NOTIFY_CHAT_HOSTS = ["ntfy.sh", "*.office.example"]
    for url in ("jsons://example.com/x", chat_url, "ntfys://ntfy.example/topic", "jsons://office.example/x"):
        with pytest.raises(ChatUrlError, match="COUNTERSIGN_NOTIFY_CHAT_HOSTS"):
            save_chat_channel(approver, url)
    for url in ("ntfys://topic", "ntfys://ntfy.sh/topic", "jsons://chat.office.example/x"):
        save_chat_channel(approver, url)


def test_a_saved_channel_at_a_host_no_longer_listed_gets_nothing(
    waiting: None, receiver: HttpReceiver, settings: Settings
) -> None:
    settings.NOTIFY_CHAT_HOSTS = ["ntfy.sh"]
    assert deliver_chat_due() == 0
    assert receiver.bodies == []
    assert problem() == "address_refused"


def test_no_connection_is_made_to_a_host_that_is_not_listed(receiver: HttpReceiver) -> None:
    """Where it is made, whatever the URL of the service leads to."""
    url = receiver.url.replace("127.0.0.1", "localhost")
    with names_of(["127.0.0.1", "*.localhost"]):
        with pytest.raises(requests.ConnectionError, match="not listed"):
            requests.post(url, timeout=5)
        assert receiver.bodies == []
        requests.post(receiver.url, data=b"{}", timeout=5)
    requests.post(url, data=b"{}", timeout=5)  # outside the block
    assert len(receiver.bodies) == 2


def test_a_shared_channel_is_at_the_host_that_the_configuration_names(
    preparer: User, approver: User, chat_url: str, receiver: HttpReceiver, settings: Settings
) -> None:
    settings.NOTIFY_CHAT_HOSTS, settings.NOTIFY_CHATS = [], [chat_url]
    settings.NOTIFY_SHARED_GROUPS = ["waiting"]
    factories.prepared(preparer)
    record_events_due()
    assert deliver_chat_due() == 1
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize(
    ("name", "hosts", "listed"),
    [
        ("Slack.com", ["slack.com"], True),
        ("slack.com.", ["slack.com"], True),
        ("hooks.slack.com", ["slack.com"], False),
        ("slack.com.example", ["slack.com"], False),
        ("a.zulipchat.com", ["*.zulipchat.com"], True),
        ("zulipchat.com", ["*.zulipchat.com"], False),
        ("evilzulipchat.com", ["*.zulipchat.com"], False),
        ("anything.example", [], False),
    ],
)
def test_a_listed_host_is_the_host_itself_or_below_a_star(name: str, hosts: list[str], listed: bool) -> None:
    assert is_listed(name, hosts) == listed


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "Slack"),
        ("tgram://123456789:abcdefg_hijklmnop/12315544/", "Telegram"),
        ("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", "Discord"),
        ("ntfys://ntfy.example/topic", "ntfy"),
    ],
)
def test_urls_of_services_are_accepted(url: str, service: str) -> None:
    assert chat_service(url).name == service


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nothing",
        "https://example.com/",
        "mailto://user:password@mail.example",
        "syslog://",
        "dbus://",
        "exec://rm",
        "slack://",
        "json://10.0.0.1/",
        "ntfy://ntfy.example/topic",
        "jsons://example.com/?redirect=yes",
        "jsons://example.com/?verify=no",
        "jsons://example.com/?method=DELETE",
        "jsons://example.com/?+Authorization=token",
        "workflows://host:443/a/b/?template=/etc/passwd",
        "ntfys://ntfy.example/topic?attach=file:///etc/passwd",
    ],
)
def test_other_urls_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(ChatUrlError) as refused:
        chat_service(url)
    assert not url or url not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::1", False),
        ("::a00:1", False),
    ],
)
def test_an_address_that_stands_for_a_private_one_is_not_public(address: str, expected: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) == expected
