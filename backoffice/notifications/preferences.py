"""What a person chose: the channels and the time of each group, and a chat channel of one's own."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.notifications.channels.chat import own_chat_service
from backoffice.notifications.events import CHOSEN_GROUPS, Group, Notice
from backoffice.notifications.models import ChatChannel, Digest, Message, Preference
from backoffice.notifications.recording.outbox import Happening, Outbox


@dataclass(frozen=True)
class Choice:
    """The channels and the time of one group."""

    by_email: bool
    by_chat: bool
    digest: Digest


def choices_of(person: User) -> dict[Group, Choice]:
    """What the person chose for each group; where nothing was chosen, everything at once."""
    stored = {one.group: one for one in Preference.objects.filter(person=person)}
    rows = ((group, stored.get(group, Preference())) for group in CHOSEN_GROUPS)
    return {group: Choice(row.by_email, row.by_chat, Digest(row.digest)) for group, row in rows}


def save_choices(person: User, choices: Mapping[Group, Choice]) -> None:
    """Set them. Messages that are stored already keep their time. Not audited; the security group has no choice."""
    Preference.objects.bulk_create(
        [
            Preference(
                person=person,
                group=group,
                by_email=choice.by_email,
                by_chat=choice.by_chat,
                digest=choice.digest,
            )
            for group, choice in choices.items()
            if group in CHOSEN_GROUPS
        ],
        update_conflicts=True,
        unique_fields=["person", "group"],
        update_fields=["by_email", "by_chat", "digest"],
    )


def chat_channel_of(person: User) -> ChatChannel | None:
    return ChatChannel.objects.filter(person=person).first()


@transaction.atomic
def save_chat_channel(person: User, url: str) -> ChatChannel:
    """Set or replace the person's chat channel; the URL is encrypted. Raises ChatUrlError."""
    channel = ChatChannel(person=person, service=own_chat_service(url).name[:64], saved_at=clock.now())
    channel.encrypt(url.strip())
    ChatChannel.objects.filter(person=person).delete()
    channel.save(force_insert=True)
    audit.record(Action.NOTIFICATION_CHANNEL_SAVED, actor=person, target=person, service=channel.service)
    return channel


@transaction.atomic
def delete_chat_channel(person: User) -> bool:
    """Delete the person's chat channel; returns whether there was one."""
    channel = ChatChannel.objects.select_for_update(of=("self",)).filter(person=person).first()
    if channel is None:
        return False
    channel.delete()
    audit.record(Action.NOTIFICATION_CHANNEL_DELETED, actor=person, target=person, service=channel.service)
    return True


TESTS_PER_HOUR = 5


class TestLimitError(Exception):
    """The person has sent as many test messages within an hour as are allowed; nothing was stored."""


@transaction.atomic
def send_test_message(person: User) -> int:
    """Store a test message for each channel of the person; returns how many. They are delivered within seconds.

    Raises TestLimitError after `TESTS_PER_HOUR` in an hour.
    """
    User.objects.get_locked(person.pk)  # so that two requests at once are counted
    now = clock.now()
    lately = Message.objects.filter(
        person=person, notice=Notice.TEST, created_at__gt=now - timedelta(hours=1)
    )
    if lately.order_by().values("event").distinct().count() >= TESTS_PER_HOUR:
        raise TestLimitError
    outbox = Outbox()
    event, page = f"test:{secrets.token_hex(8)}", reverse("notifications:preferences")
    outbox.add(Happening(event, Notice.TEST, Group.SECURITY, now, page, (person.pk,)))
    return outbox.store()
