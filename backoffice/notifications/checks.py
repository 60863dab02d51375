"""Checks of the configured channels, for `manage.py check`."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from backoffice.core.web.mail import email_is_on
from backoffice.notifications.channels.chat import ChatUrlError, chat_service
from backoffice.notifications.events import Group


@register(deploy=True)
def check_channels(**_of_django: Any) -> Iterable[CheckMessage]:
    """Warn if no channel is configured, and report a shared chat URL that cannot be used."""
    if not (email_is_on() or settings.NOTIFY_CHATS or settings.NOTIFY_WEBHOOKS):
        yield Warning(
            "No channel for notifications is configured. Waiting, failed and unknown operations notify no one.",
            hint="Set COUNTERSIGN_EMAIL_URL, COUNTERSIGN_NOTIFY_CHATS or COUNTERSIGN_NOTIFY_WEBHOOKS.",
            id="notifications.W001",
        )
    for number, url in enumerate(settings.NOTIFY_CHATS, start=1):
        try:
            chat_service(url)
        except ChatUrlError as exc:
            yield Error(f"COUNTERSIGN_NOTIFY_CHATS, number {number}: {exc}", id="notifications.E001")


@register
def check_groups(**_of_django: Any) -> Iterable[CheckMessage]:
    """The groups of shared channels are known."""
    for name in sorted({*settings.NOTIFY_SHARED_GROUPS, *settings.NOTIFY_WEBHOOK_GROUPS} - set(Group.values)):
        yield Error(
            f"COUNTERSIGN_NOTIFY_SHARED_GROUPS or COUNTERSIGN_NOTIFY_WEBHOOK_GROUPS: {name!r} is no group.",
            hint=f"The groups are {', '.join(Group.values)}.",
            id="notifications.E002",
        )
