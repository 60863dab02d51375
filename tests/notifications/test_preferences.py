"""What people choose: channels, and when."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.models import Entry
from backoffice.notifications.delivery import deliver_email_due
from backoffice.notifications.events import CHOSEN_GROUPS, Group
from backoffice.notifications.models import Channel, ChatChannel, Digest, Message, Preference
from backoffice.notifications.preferences import (
    Choice,
    choices_of,
    delete_chat_channel,
    save_chat_channel,
    save_choices,
)
from backoffice.notifications.recording.audit_feed import record_events_due
from backoffice.operations.workflow import approvals
from tests import factories
from tests.notifications.receivers import HttpReceiver, MailServer
from tests.notifications.steps import make_due, notices_of, sweep
from tests.operations.steps import let_second_factor_age

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mailbox")]
NOTHING = Choice(by_email=False, by_chat=False, digest=Digest.AT_ONCE)
SignIn = Callable[[Client, User], Client]


def switch_off_everything(person: User) -> None:
    save_choices(person, dict.fromkeys(Group, NOTHING))


def test_everything_is_told_by_email_at_once_until_a_person_chooses(preparer: User) -> None:
    assert choices_of(preparer) == dict.fromkeys(
        CHOSEN_GROUPS, Choice(by_email=True, by_chat=True, digest=Digest.AT_ONCE)
    )


def test_a_group_can_be_switched_off(preparer: User, approver: User, second_approver: User) -> None:
    save_choices(approver, {Group.WAITING: NOTHING})
    factories.prepared(preparer)
    record_events_due()
    assert (notices_of(approver.pk), notices_of(second_approver.pk)) == ([], ["waits"])


def test_security_cannot_be_switched_off(preparer: User) -> None:
    switch_off_everything(preparer)
    assert not Preference.objects.filter(group=Group.SECURITY).exists()
    staff.set_roles(preparer.pk, roles=[Role.AUDITOR], actor=None)
    record_events_due()
    message = Message.objects.get(person=preparer)
    assert (message.notice, message.due_at) == ("roles_changed", message.created_at)


def test_the_database_stores_no_choice_for_security(preparer: User) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Preference.objects.create(person=preparer, group=Group.SECURITY, by_email=False)


def test_security_is_told_on_every_channel(preparer: User, chat_url: str) -> None:
    save_chat_channel(preparer, chat_url)
    switch_off_everything(preparer)
    record_events_due()
    assert (
        notices_of(preparer.pk, Channel.EMAIL) == notices_of(preparer.pk, Channel.CHAT) == ["channel_saved"]
    )


@pytest.mark.parametrize(
    ("digest", "now", "zone", "due"),
    [
        (Digest.AT_ONCE, "2026-03-01T10:20:30", "Africa/Lagos", "2026-03-01T10:20:30"),
        (Digest.HOURLY, "2026-03-01T10:20:30", "Africa/Lagos", "2026-03-01T11:00:00"),
        (Digest.HOURLY, "2026-03-01T10:20:00", "Asia/Kolkata", "2026-03-01T10:30:00"),
        (Digest.DAILY, "2026-03-01T06:59:59", "Africa/Lagos", "2026-03-01T07:00:00"),
        (Digest.DAILY, "2026-03-01T07:00:00", "Africa/Lagos", "2026-03-02T07:00:00"),
        (Digest.DAILY, "2026-03-28T12:00:00", "Europe/Berlin", "2026-03-29T06:00:00"),  # clocks go forward
        (Digest.DAILY, "2026-10-24T12:00:00", "Europe/Berlin", "2026-10-25T07:00:00"),  # and back
        (Digest.HOURLY, "2026-10-25T00:30:00", "Europe/Berlin", "2026-10-25T01:00:00"),
        (Digest.DAILY, "2026-03-01T23:30:00", "Pacific/Auckland", "2026-03-02T19:00:00"),
    ],
)
def test_a_digest_is_due_at_the_next_time_of_the_person(
    digest: Digest, now: str, zone: str, due: str
) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert digest.due_time(moment, zone) == datetime.fromisoformat(due).replace(tzinfo=UTC)


def test_a_daily_digest_is_one_mail_with_what_still_waits(
    preparer: User, approver: User, mailbox: MailServer
) -> None:
    save_choices(approver, {Group.WAITING: Choice(by_email=True, by_chat=True, digest=Digest.DAILY)})
    operations = [factories.prepared_to_another_account(preparer) for _ in range(3)]
    sweep()
    assert mailbox.mails == []
    approvals.cancel_operation(operations[0].pk, actor=preparer)
    make_due()
    assert deliver_email_due() == 2
    (mail,) = mailbox.to(approver.email)
    assert mail["Subject"] == "Countersign: 2 notifications"


def test_the_page_shows_and_saves_the_choices(client: Client, preparer: User, sign_in: SignIn) -> None:
    signed_in = sign_in(client, preparer)
    page = signed_in.get(reverse("notifications:preferences"))
    assert page.content.count(b"checked") == 2 * len(CHOSEN_GROUPS)
    form = {f"{group}_digest": "at_once" for group in CHOSEN_GROUPS}
    form |= {"waiting_digest": "daily", "waiting_email": "on", "security_email": ""}
    assert signed_in.post(reverse("notifications:preferences"), form).status_code == 302
    chosen = choices_of(preparer)
    assert chosen[Group.WAITING] == Choice(by_email=True, by_chat=False, digest=Digest.DAILY)
    assert chosen[Group.PROBLEMS] == NOTHING
    assert Group.SECURITY not in chosen


def test_an_unknown_time_is_shown_beside_its_field(client: Client, preparer: User, sign_in: SignIn) -> None:
    answer = sign_in(client, preparer).post(reverse("notifications:preferences"), {"waiting_digest": "never"})
    assert answer.status_code == 422
    assert not Preference.objects.exists()


def test_the_url_of_a_chat_channel_is_never_shown_again(
    client: Client, preparer: User, sign_in: SignIn, chat_url: str
) -> None:
    signed_in = sign_in(client, preparer)
    answer = signed_in.post(reverse("notifications:chat_channel"), {"url": chat_url}, follow=True)
    assert b"JSON" in answer.content
    assert b"a-token" not in answer.content
    entry = Entry.objects.get(action="notification_channel.saved")
    assert "a-token" not in str(entry.detail)
    refused = signed_in.post(reverse("notifications:chat_channel"), {"url": "slack://a-token"})
    assert refused.status_code == 422
    assert b"a-token" not in refused.content
    assert ChatChannel.objects.get().decrypted() == chat_url


def test_a_chat_channel_is_saved_with_a_fresh_second_factor_only(
    client: Client, preparer: User, sign_in: SignIn, chat_url: str
) -> None:
    signed_in = sign_in(client, preparer)
    let_second_factor_age(signed_in)
    answer = signed_in.post(reverse("notifications:chat_channel"), {"url": chat_url})
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("accounts:second_factor"))
    assert not ChatChannel.objects.exists()


def test_a_deleted_chat_channel_gets_nothing_more(
    client: Client, preparer: User, approver: User, sign_in: SignIn, chat_url: str, receiver: HttpReceiver
) -> None:
    save_chat_channel(approver, chat_url)
    sign_in(client, approver).post(reverse("notifications:delete_chat_channel"))
    assert not ChatChannel.objects.exists()
    assert Entry.objects.filter(action="notification_channel.deleted").count() == 1
    assert not delete_chat_channel(approver)
    factories.prepared(preparer)
    sweep()
    assert receiver.bodies == []


def test_a_test_message_goes_to_every_channel_of_the_person(
    client: Client,
    preparer: User,
    sign_in: SignIn,
    chat_url: str,
    receiver: HttpReceiver,
    mailbox: MailServer,
    settings: Settings,
) -> None:
    settings.NOTIFY_EMAILS, settings.NOTIFY_SHARED_GROUPS = ["ops@company.example"], list(Group.values)
    save_chat_channel(preparer, chat_url)
    record_events_due()
    Message.objects.all().delete()
    sign_in(client, preparer).post(reverse("notifications:send_test"))
    sweep()
    (mail,) = mailbox.mails
    assert (mail["To"], mail["Subject"]) == (preparer.email, "Countersign: Test message")
    assert len(receiver.bodies) == 1
