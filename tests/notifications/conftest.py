"""A deployment with a mail server on this machine, and receivers over HTTP."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests import stub_provider
from tests.notifications.receivers import HttpReceiver, MailServer, http_receiver, mail_server


@pytest.fixture
def public_url(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://office.example"


@pytest.fixture
def mailbox(settings: Settings, public_url: None) -> Iterator[MailServer]:
    """A real mail server, to which the product sends."""
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


@pytest.fixture
def receiver(public_url: None) -> Iterator[HttpReceiver]:
    with http_receiver() as server:
        yield server


@pytest.fixture
def webhook(receiver: HttpReceiver, settings: Settings) -> HttpReceiver:
    """The receiver as the configured webhook."""
    settings.NOTIFY_WEBHOOKS = [receiver.url]
    settings.NOTIFY_WEBHOOK_SECRET = "s" * 32
    return receiver


@pytest.fixture
def chat_url(receiver: HttpReceiver, settings: Settings) -> str:
    """The receiver as a chat service inside one's own network."""
    settings.NOTIFY_PRIVATE_ADDRESSES = True
    settings.NOTIFY_CHAT_HOSTS = ["127.0.0.1", "localhost"]
    return f"json://127.0.0.1:{receiver.port}/a-token"


@pytest.fixture
def provider(settings: Settings) -> Iterator[stub_provider.StubProvider]:
    """A provider that answers as the test says."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub
