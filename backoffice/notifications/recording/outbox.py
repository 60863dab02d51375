"""Store messages: for each person of an event and each shared channel, one on each channel that was chosen."""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from uuid import UUID

from django.conf import settings

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.core.web.mail import email_is_on
from backoffice.notifications.events import Group, Notice
from backoffice.notifications.models import Channel, ChatChannel, Digest, Message, Preference


@dataclass(frozen=True)
class Happening:
    """One notice to store, for these people. `event` makes it unique: no person gets it twice on one channel."""

    event: str
    notice: Notice
    group: Group
    at: datetime
    path: str
    people: Collection[int]
    operation: UUID | None = None
    is_personal: bool = False  # not for shared channels
    at_full_minute: bool = False  # what is not in a digest is due at the next full minute, not at once


def audit_event(position: int, notice: Notice) -> str:
    """The event of a notice that an audit entry gives."""
    return f"audit:{position}:{notice}"


def audit_position(event: str) -> int | None:
    """The position of the audit entry that gave this event; None for one that has no entry."""
    source, _, rest = event.partition(":")
    return int(rest.partition(":")[0]) if source == "audit" else None


def shared_name(address: str) -> str:
    """The name under which a shared channel is stored. Its address may hold a token, so it is not stored."""
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def shared_channels(group: Group) -> list[tuple[Channel, str]]:
    """The shared channels that a group goes to: the channel and the name of the address."""
    by_channel = {
        Channel.EMAIL: (settings.NOTIFY_EMAILS if email_is_on() else [], settings.NOTIFY_SHARED_GROUPS),
        Channel.CHAT: (settings.NOTIFY_CHATS, settings.NOTIFY_SHARED_GROUPS),
        Channel.WEBHOOK: (settings.NOTIFY_WEBHOOKS, settings.NOTIFY_WEBHOOK_GROUPS),
    }
    return [
        (channel, shared_name(address))
        for channel, (addresses, groups) in by_channel.items()
        if group in groups
        for address in addresses
    ]


def shared_address(channel: str, name: str) -> str | None:
    """The configured address of a shared channel; None if it is no longer configured."""
    addresses = {
        Channel.EMAIL: settings.NOTIFY_EMAILS,
        Channel.CHAT: settings.NOTIFY_CHATS,
        Channel.WEBHOOK: settings.NOTIFY_WEBHOOKS,
    }[Channel(channel)]
    return next((address for address in addresses if shared_name(address) == name), None)


class Outbox:
    """Makes the messages of many happenings, with what people chose read once. `store` inserts them."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._now = clock.now()

    def add(self, happening: Happening) -> None:
        """Make the messages of one happening. None without PUBLIC_URL, since their links would lead nowhere."""
        if not settings.PUBLIC_URL:
            return
        shared = (
            []
            if happening.is_personal or happening.notice == Notice.TEST
            else shared_channels(happening.group)
        )
        now = self._next_minute if happening.at_full_minute else self._now
        for channel, name in shared:
            self._messages.append(self._message(happening, channel, now, shared=name))
        for pk in sorted(happening.people):
            for channel, chosen_at in self._chosen(pk, happening.group):
                due_at = max(now, chosen_at)
                self._messages.append(self._message(happening, channel, due_at, person_id=pk))

    def store(self) -> int:
        """Insert them in the caller's transaction, except those stored already; returns how many were made."""
        Message.objects.bulk_create(self._messages, ignore_conflicts=True, batch_size=500)
        return len(self._messages)

    def _message(
        self, happening: Happening, channel: Channel, due_at: datetime, **recipient: int | str
    ) -> Message:
        return Message(
            event=happening.event,
            notice=happening.notice,
            group=happening.group,
            at=happening.at,
            operation=happening.operation,
            path=happening.path,
            channel=channel,
            created_at=self._now,
            due_at=due_at,
            **recipient,
        )

    def _chosen(self, person: int, group: Group) -> Iterator[tuple[Channel, datetime]]:
        """The channels of a person for a group, each with its time. Security goes to all of them at once."""
        chosen = self._preferences.get((person, group)) or Preference()
        is_security = group == Group.SECURITY
        digest = Digest.AT_ONCE if is_security else Digest(chosen.digest)
        due_at = digest.due_time(self._now, self._time_zones.get(person, settings.TIME_ZONE))
        if email_is_on() and (is_security or chosen.by_email):
            yield Channel.EMAIL, due_at
        if person in self._with_chat and (is_security or chosen.by_chat):
            yield Channel.CHAT, due_at

    @property
    def _next_minute(self) -> datetime:
        return self._now.replace(second=0, microsecond=0) + timedelta(minutes=1)

    @cached_property
    def _preferences(self) -> dict[tuple[int, str], Preference]:
        return {(one.person_id, one.group): one for one in Preference.objects.all()}

    @cached_property
    def _with_chat(self) -> frozenset[int]:
        return frozenset(ChatChannel.objects.values_list("person", flat=True))

    @cached_property
    def _time_zones(self) -> dict[int, str]:
        return dict(User.objects.values_list("pk", "time_zone"))
