"""What is due is delivered once, tried again after a failure, and given up in the end."""

import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.core import clock, fault_points
from backoffice.notifications.channels import email
from backoffice.notifications.delivery import (
    CLAIMED_FOR,
    deliver_chat_due,
    deliver_email_due,
    deliver_webhooks_due,
)
from backoffice.notifications.events import Notice
from backoffice.notifications.models import Channel, ChatChannel, Message
from backoffice.notifications.recording.audit_feed import record_events_due
from backoffice.notifications.recording.occurrences import find_occurrences_due
from backoffice.operations.approval.escalation import escalate_due
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests import factories
from tests.notifications.receivers import HttpReceiver, MailServer, silent_server
from tests.notifications.steps import later_by, make_due

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(preparer: User, approver: User, mailbox: MailServer) -> Operation:
    """An operation that waits for the approver, and a message about it."""
    operation = factories.prepared(preparer)
    record_events_due()
    return operation


def test_a_message_is_delivered_once(waiting: Operation, approver: User, mailbox: MailServer) -> None:
    assert deliver_email_due() == 1
    assert deliver_email_due() == 0
    (mail,) = mailbox.mails
    assert mail["To"] == approver.email
    assert Message.objects.get().delivered_at is not None


def test_what_is_due_together_goes_out_in_one_mail(
    preparer: User, waiting: Operation, mailbox: MailServer
) -> None:
    second = factories.prepared_to_another_account(preparer)
    record_events_due()
    assert deliver_email_due() == 2
    (mail,) = mailbox.mails
    assert mail["Subject"] == "Countersign: 2 notifications"
    text = mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert waiting.reference in text
    assert second.reference in text


def test_an_unreachable_server_is_tried_again_later_and_later(
    waiting: Operation, mailbox: MailServer, settings: Settings
) -> None:
    settings.EMAIL_PORT = 1  # where nobody listens
    waits = []
    for tries in range(1, 9):
        make_due()
        before = timezone.now()
        assert deliver_email_due() == 0
        message = Message.objects.get()
        assert (message.tries, message.problem) == (tries, {"code": "not_reached"})
        assert message.due_at is not None
        waits.append(round((message.due_at - before).total_seconds() / 60))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    settings.EMAIL_PORT = mailbox.port
    make_due()
    assert deliver_email_due() == 1
    assert Message.objects.get().problem == {}


def test_an_unreachable_server_delays_a_round_once(
    preparer: User, approver: User, second_approver: User, mailbox: MailServer, settings: Settings
) -> None:
    factories.prepared(preparer)
    record_events_due()
    settings.EMAIL_PORT = 1
    deliver_email_due()
    assert sorted(Message.objects.values_list("tries", flat=True)) == [0, 1]


@pytest.mark.parametrize("answer", ["451 Try again later", "554 Rejected"])
def test_a_refused_mail_is_tried_again_and_does_not_hold_up_others(
    preparer: User,
    approver: User,
    second_approver: User,
    mailbox: MailServer,
    answer: str,
) -> None:
    factories.prepared(preparer)
    record_events_due()
    mailbox.refused = {approver.email}
    assert deliver_email_due() == 1
    refused = Message.objects.get(person=approver)
    assert (refused.tries, refused.problem) == (1, {"code": "refused"})
    mailbox.refused, mailbox.answer = set(), answer
    make_due()
    assert deliver_email_due() == 0
    assert Message.objects.get(person=approver).tries == 2


def test_a_server_that_does_not_answer_is_left_in_time(
    waiting: Operation, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_server() as port:
        settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = port, 20
        monkeypatch.setattr(email, "SECONDS", 0.2)
        assert deliver_email_due() == 0
    assert Message.objects.get().problem == {"code": "timed_out"}


def test_the_timeout_of_a_step_counts_too(waiting: Operation, settings: Settings) -> None:
    with silent_server() as port:
        settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = port, 0.2
        assert deliver_email_due() == 0
    assert Message.objects.get().problem == {"code": "not_reached"}


def test_a_message_is_given_up_after_the_configured_time(
    waiting: Operation, mailbox: MailServer, settings: Settings
) -> None:
    settings.EMAIL_PORT = 1
    make_due(hours=71)
    deliver_email_due()
    assert Message.objects.get().given_up_at is None
    make_due(hours=2)
    deliver_email_due()
    message = Message.objects.get()
    assert (message.due_at, message.given_up_at is not None) == (None, True)
    settings.EMAIL_PORT = mailbox.port
    assert deliver_email_due() == 0
    assert mailbox.mails == []


def test_a_process_that_dies_after_the_claim_loses_nothing(
    waiting: Operation, mailbox: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        """In place of the kill."""

    def die(_name: str) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reach", die)
        with pytest.raises(KilledError):
            deliver_email_due()
    assert deliver_email_due() == 0  # it may still be at work
    assert mailbox.mails == []
    with clock.use_clock(partial(later_by, CLAIMED_FOR + timedelta(seconds=1))):
        assert deliver_email_due() == 1
        assert deliver_email_due() == 0
    assert len(mailbox.mails) == 1


def test_a_process_whose_claim_ended_records_nothing(
    waiting: Operation, mailbox: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was frozen before it delivered, and another process took over meanwhile."""

    def freeze(_name: str) -> None:
        Message.objects.update(claim="another", due_at=timezone.now() + timedelta(hours=1))

    monkeypatch.setattr(fault_points, "reach", freeze)
    assert deliver_email_due() == 0
    assert Message.objects.get().delivered_at is None


@pytest.mark.django_db(transaction=True)
def test_two_sweepers_deliver_each_message_once(
    preparer: User, approver: User, second_approver: User, webhook: HttpReceiver, mailbox: MailServer
) -> None:
    for _ in range(10):
        factories.prepared_to_another_account(preparer)
    record_events_due()
    both = threading.Barrier(2)

    def sweep() -> None:
        both.wait(10)
        deliver_email_due()
        deliver_webhooks_due()
        connections.close_all()

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Message.objects.filter(delivered_at=None).count() == 0
    for person in (approver, second_approver):
        text = "".join(str(mail.get_body(("plain",))) for mail in mailbox.to(person.email))
        assert [text.count(one.reference) for one in Operation.objects.all()] == [1] * 10
    posted = b"".join(webhook.bodies)
    assert [posted.count(one.reference.encode()) for one in Operation.objects.all()] == [1] * 10


def test_what_was_decided_meanwhile_is_not_asked(
    preparer: User, waiting: Operation, mailbox: MailServer
) -> None:
    approvals.cancel_operation(waiting.pk, actor=preparer)
    assert deliver_email_due() == 0
    assert mailbox.mails == []
    assert Message.objects.get().dropped_at is not None


def test_who_lost_the_right_is_not_asked(approver: User, waiting: Operation, mailbox: MailServer) -> None:
    approver.groups.clear()
    deliver_email_due()
    assert mailbox.mails == []


def test_a_deactivated_person_hears_of_the_account_alone(preparer: User, mailbox: MailServer) -> None:
    pause.pause_payments(actor=preparer, reason="Something is wrong")
    record_events_due()
    staff.deactivate_staff(preparer.pk, actor=None)
    record_events_due()
    deliver_email_due()
    (mail,) = mailbox.to(preparer.email)
    assert mail["Subject"] == "Countersign: Your account was deactivated"


def test_a_channel_that_is_no_longer_configured_is_reported(
    preparer: User, webhook: HttpReceiver, settings: Settings
) -> None:
    factories.prepared(preparer)
    record_events_due()
    settings.NOTIFY_WEBHOOKS = []
    deliver_webhooks_due()
    assert Message.objects.get(channel=Channel.WEBHOOK).problem == {"code": "not_configured"}
    assert webhook.bodies == []


def test_a_chat_channel_that_was_deleted_or_cannot_be_decrypted_is_reported(
    preparer: User, approver: User, public_url: None, chat_url: str
) -> None:
    own = ChatChannel(person=approver, service="JSON", saved_at=timezone.now())
    own.encrypt(chat_url)
    own.save()
    factories.prepared(preparer)
    record_events_due()
    ChatChannel.objects.update(encrypted_url=b"nothing")
    deliver_chat_due()
    assert Message.objects.get(channel=Channel.CHAT).problem == {"code": "unreadable"}
    ChatChannel.objects.all().delete()
    make_due()
    deliver_chat_due()
    assert Message.objects.get(channel=Channel.CHAT).problem == {"code": "not_configured"}


# Escalations


@pytest.fixture
def escalated(
    preparer: User, approver: User, administrator: User, mailbox: MailServer, settings: Settings
) -> Operation:
    """An operation that has waited long, and messages about it that are not delivered yet."""
    settings.NOTIFY_ESCALATE_HOURS = 24
    settings.NOTIFY_EMAILS, settings.NOTIFY_SHARED_GROUPS = ["team@countersign.example"], ["waiting"]
    operation = factories.prepared(preparer)
    later = later_by(timedelta(hours=25))
    with clock.use_clock(lambda: later):
        assert escalate_due() == 1
    record_events_due()
    make_due()
    return operation


def delivered_escalations() -> int:
    deliver_email_due()
    return Message.objects.filter(notice=Notice.ESCALATED, delivered_at__isnull=False).count()


def test_an_escalation_is_delivered_while_it_applies(escalated: Operation) -> None:
    assert delivered_escalations() == 2  # an administrator, and the shared channel


@pytest.mark.parametrize("decided", ["approved", "cancelled", "expired"])
def test_an_escalation_is_dropped_once_its_operation_does_not_wait_any_more(
    escalated: Operation, approver: User, preparer: User, decided: str
) -> None:
    if decided == "approved":
        factories.approve(escalated, approver)
    elif decided == "cancelled":
        approvals.cancel_operation(escalated.pk, actor=preparer)
    else:
        factories.expire(escalated, timezone.now())
    assert delivered_escalations() == 0
    assert Message.objects.filter(notice=Notice.ESCALATED, dropped_at__isnull=False).count() == 2


def test_that_too_few_can_approve_is_dropped_once_enough_can(
    preparer: User, approver: User, administrator: User, mailbox: MailServer
) -> None:
    User.objects.filter(pk=approver.pk).update(is_active=False)
    factories.prepared(preparer)
    assert escalate_due() == 1
    record_events_due()
    User.objects.filter(pk=approver.pk).update(is_active=True)
    deliver_email_due()
    message = Message.objects.get(notice=Notice.WITHOUT_APPROVERS)
    assert (message.delivered_at, message.dropped_at is not None) == (None, True)


def test_that_an_operation_waits_long_to_be_sent_is_dropped_once_it_was_released(
    preparer: User, approver: User, administrator: User, mailbox: MailServer, settings: Settings
) -> None:
    settings.NOTIFY_ESCALATE_HOURS = 24
    operation = factories.approved(preparer, approver)
    later = later_by(timedelta(hours=25))
    with clock.use_clock(lambda: later):
        find_occurrences_due()
    make_due()
    factories.release(operation, approver)
    assert delivered_escalations() == 0
    assert Message.objects.get(notice=Notice.ESCALATED).dropped_at is not None
