"""What messages say: nothing that must not leave, in the reader's language, readable on a telephone."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation
from pytest_django import Settings

from backoffice.accounts.models import Language, User
from backoffice.notifications.delivery import deliver_email_due, deliver_webhooks_due
from backoffice.notifications.events import Group, Notice
from backoffice.notifications.models import Message
from backoffice.notifications.recording.audit_feed import record_events_due
from backoffice.notifications.recording.outbox import Happening, Outbox
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests import factories
from tests.notifications.receivers import HttpReceiver, MailServer
from tests.operations import steps
from tests.operations.batches import payouts
from tests.pseudo_language import CODE, pseudo_language

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(preparer: User, approver: User, mailbox: MailServer) -> Operation:
    operation = factories.prepared(preparer)
    record_events_due()
    return operation


def parts(mailbox: MailServer) -> tuple[str, str]:
    """The plain text and the HTML of the only mail."""
    (mail,) = mailbox.mails
    plain, rich = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert rich is not None
    return plain.get_content(), rich.get_content()


def test_a_message_names_reference_kind_and_a_link_and_nothing_else(
    client: Client, waiting: Operation, preparer: User, mailbox: MailServer, webhook: HttpReceiver
) -> None:
    record_events_due()
    factories.prepared_to_another_account(preparer)
    record_events_due()
    deliver_email_due()
    deliver_webhooks_due()
    amounts_and_names = [
        "250,000",
        "250000",
        "Obi",
        "OBI",
        "0123456789",
        "Access",
        preparer.full_name,
        waiting.digest,
    ]
    for text in (*parts(mailbox), *(body.decode() for body in webhook.bodies)):
        assert [word for word in amounts_and_names if word in text] == []
    for text in parts(mailbox):
        assert f"{waiting.reference}: Waits for your decision" in text
        assert "Withdrawal" in text
        assert f"https://office.example{waiting.get_absolute_url()}" in text
    assert "sign-in" in client.get(waiting.get_absolute_url())["Location"]


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ([Status.FAILED, Status.SUCCEEDED, Status.FAILED], "2 of 3 payments failed"),
        ([Status.FAILED], "1 of 1 payment failed"),
    ],
)
def test_the_failed_payments_of_a_batch_are_counted_when_the_message_is_made(
    preparer: User, approver: User, mailbox: MailServer, statuses: list[Status], text: str
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(len(statuses)))
    for operation, status in zip(payouts.row_operations(batch), statuses, strict=True):
        steps.put(operation, Status.SENDING, status)
    outbox = Outbox()
    happening = Happening(
        *("failures", Notice.ROWS_FAILED, Group.OUTCOMES, batch.prepared_at),
        *(batch.get_absolute_url(), {preparer.pk}, batch.pk),
    )
    outbox.add(happening)
    outbox.store()
    deliver_email_due()
    for part in parts(mailbox):
        assert f"{batch.reference}: {text}" in part


def test_a_deployment_can_add_the_sentence(
    waiting: Operation, mailbox: MailServer, settings: Settings
) -> None:
    settings.NOTIFY_SENTENCES = True
    deliver_email_due()
    assert all(waiting.sentence in text for text in parts(mailbox))


def test_the_sentence_is_in_the_language_of_the_person(
    waiting: Operation, approver: User, mailbox: MailServer, settings: Settings
) -> None:
    settings.NOTIFY_SENTENCES = True
    User.objects.filter(pk=approver.pk).update(language=Language.FRENCH)
    deliver_email_due()
    kind, payload = read_content(waiting)
    with translation.override("fr"):
        french = kind.sentence(payload)
    assert french != waiting.sentence
    assert all(french in text for text in parts(mailbox))


def test_the_sentence_needs_the_right_to_see_operations(
    waiting: Operation, preparer: User, approver: User, mailbox: MailServer, settings: Settings
) -> None:
    settings.NOTIFY_SENTENCES = True
    Message.objects.update(notice=Notice.REJECTED)
    approver.groups.clear()
    deliver_email_due()
    assert not any(waiting.sentence in text for text in parts(mailbox))


def test_a_mail_is_in_the_language_and_time_zone_of_the_person(
    waiting: Operation, approver: User, mailbox: MailServer
) -> None:
    User.objects.filter(pk=approver.pk).update(language=Language.FRENCH, time_zone="Africa/Lagos")
    Message.objects.update(at=datetime(2026, 2, 1, 9, 5, tzinfo=UTC))
    deliver_email_due()
    plain, rich = parts(mailbox)
    assert '<html lang="fr">' in rich
    assert "1er févr. 2026, 10:05 WAT" in plain


def test_every_word_of_a_mail_is_translated(
    waiting: Operation, mailbox: MailServer, settings: Settings, tmp_path: Path
) -> None:
    Message.objects.update(at=datetime(2026, 2, 1, 9, 5, tzinfo=UTC))
    with pseudo_language(tmp_path):
        settings.NOTIFY_LANGUAGE = CODE
        deliver_email_due()
    plain, _ = parts(mailbox)
    untranslated = re.sub(r"⟦[^⟦⟧]*⟧", "", re.sub(r"⟦[^⟦⟧]*⟧", "", re.sub(r"https?://\S+", "", plain)))
    assert re.findall(r"[A-Za-z]{4,}", untranslated) == []


def test_the_label_of_a_notice_holds_no_placeholder() -> None:
    with translation.override("en"):
        assert not any(set("{}%") & set(str(notice.label)) for notice in Notice)


def test_a_webhook_names_codes_that_do_not_change(
    preparer: User, approver: User, webhook: HttpReceiver
) -> None:
    operation = factories.prepared(preparer)
    record_events_due()
    deliver_webhooks_due()
    (event,) = json.loads(webhook.bodies[0])["events"]
    assert (event["notice"], event["reference"], event["kind"]) == (
        "waits",
        operation.reference,
        "withdrawal",
    )


def test_the_html_of_a_mail_has_no_fixed_width_and_loads_nothing(
    waiting: Operation, mailbox: MailServer
) -> None:
    deliver_email_due()
    _, rich = parts(mailbox)
    assert "width=device-width" in rich
    assert not re.search(r"<(img|script|link|table|iframe)|url\(", rich)
    assert re.findall(r"(?<!max-)width:\s*\d+px", rich) == []
