"""The demo's mailbox: what would have been sent, in the demo alone."""

from pathlib import Path

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.notifications.delivery import deliver_email_due
from backoffice.notifications.models import Message
from backoffice.notifications.recording.audit_feed import record_events_due
from backoffice.operations.models.operations import Operation
from tests import factories


@pytest.fixture
def waiting(demo: Client, settings: Settings, tmp_path: Path) -> Operation:
    """An operation that waits for two people, who were told by mail."""
    settings.PUBLIC_URL = "http://localhost"
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mailbox")
    record_events_due()  # that the accounts were created
    Message.objects.all().delete()
    operation = factories.prepared(User.objects.get(email="tunde@countersign.example"))
    record_events_due()
    deliver_email_due()
    return operation


def test_it_shows_the_mails_of_everybody_before_sign_in(demo: Client, waiting: Operation) -> None:
    page = demo.get(reverse("demo:mailbox")).content.decode()
    assert page.count(f"Countersign: {waiting.reference}: Waits for your decision") == 2
    assert "To amara@countersign.example" in page
    assert "To chidi@countersign.example" in page


def test_a_mail_opens_as_html(demo: Client, waiting: Operation, settings: Settings) -> None:
    newest = max(Path(str(settings.EMAIL_FILE_PATH)).iterdir()).name
    answer = demo.get(reverse("demo:mail_as_html", args=[newest]))
    assert f"{waiting.reference}: Waits for your decision" in answer.content.decode()
    assert "'unsafe-inline'" in answer["Content-Security-Policy"]
    assert demo.get(reverse("demo:mail_as_html", args=["..%2F..%2Fetc"])).status_code == 404
    assert demo.get(reverse("demo:mail_as_html", args=["other"])).status_code == 404


def test_the_sign_in_page_links_to_it(demo: Client) -> None:
    assert reverse("demo:mailbox") in demo.get(reverse("accounts:sign_in")).content.decode()
    assert "No emails yet." in demo.get(reverse("demo:mailbox")).content.decode()


def test_it_exists_in_the_demo_alone() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("demo:mailbox", urlconf="backoffice.urls")
