"""The outbox of notifications, why a message could not be delivered, how far the audit log was read, and what each
person chose.
"""

from datetime import datetime, timedelta
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from backoffice.accounts.models import User
from backoffice.core.encryption import EncryptedRow
from backoffice.core.web.formatting import code_sentence
from backoffice.notifications.events import CHOSEN_GROUPS, Group, Notice


class Channel(models.TextChoices):
    """How a message is delivered."""

    EMAIL = "email", _("Email")
    CHAT = "chat", _("Chat or push")
    WEBHOOK = "webhook", _("Webhook")


class Digest(models.TextChoices):
    """When the messages of a group are delivered."""

    AT_ONCE = "at_once", _("At once")
    HOURLY = "hourly", pgettext_lazy("digest", "Every hour")
    DAILY = "daily", pgettext_lazy("digest", "Every day at 08:00")

    def due_time(self, now: datetime, time_zone: str) -> datetime:
        """When a message recorded now is delivered: now, at the next full hour, or at the next 08:00 there."""
        if self == Digest.AT_ONCE:
            return now
        local = now.astimezone(ZoneInfo(time_zone))
        if self == Digest.HOURLY:
            past = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
            return now + timedelta(hours=1) - past
        morning = local.replace(hour=DAILY_AT, minute=0, second=0, microsecond=0)
        # Added to the local time, so that it is 08:00 on the day of a clock change, too.
        return morning if morning > local else morning + timedelta(days=1)


DAILY_AT = 8  # o'clock, in the person's time zone


class Problem(models.TextChoices):
    """Why a message was not delivered. The label is the sentence, with its parameters in braces."""

    NOT_REACHED = "not_reached", _("The server cannot be reached, or did not respond.")
    TIMED_OUT = "timed_out", _("The server did not respond in time.")
    REFUSED = "refused", _("The server refused the message.")
    STATUS = "status", _("The server responded with status {status}.")
    ADDRESS_REFUSED = "address_refused", _("The address is not allowed.")
    NOT_CONFIGURED = "not_configured", _("The channel is no longer configured.")
    UNREADABLE = "unreadable", _("The stored address cannot be decrypted.")


class AuditCursor(models.Model):
    """How far the audit log was read for notifications: one row, advanced in the commit that stores the messages."""

    position = models.PositiveBigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="notification_one_cursor")]

    def __str__(self) -> str:
        return f"read up to {self.position}"


class Occurrence(models.Model):
    """An event without an audit entry that was found once, such as "this key expires in 7 days"."""

    key = models.CharField(max_length=200, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.key


class Message(models.Model):
    """One event for one person or shared channel on one channel: the outbox.

    `due_at` is the next time to try; null once it was delivered, dropped or given up. A process claims due messages
    by setting `claim` and moving `due_at`, in one compare-and-set. All due messages of a recipient go out together.
    """

    event = models.CharField(max_length=200)  # the audit position, or the key of the occurrence
    notice = models.CharField(max_length=32, choices=Notice)
    group = models.CharField(max_length=16, choices=Group)
    person = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    shared = models.CharField(max_length=64, blank=True)  # the name of a shared channel; empty for a person
    channel = models.CharField(max_length=8, choices=Channel)
    at = models.DateTimeField()  # of the event
    operation = models.UUIDField(null=True)
    path = models.CharField(max_length=200)  # of the page it links to, which requires sign-in
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    claim = models.CharField(max_length=32, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.JSONField(default=dict)  # a `Problem` with its parameters, of the last try
    delivered_at = models.DateTimeField(null=True)
    dropped_at = models.DateTimeField(null=True)  # no longer true or allowed when it was due
    given_up_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        ordering: ClassVar[list[str]] = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["event", "person", "channel"],
                condition=Q(person__isnull=False),
                name="message_once_per_person",
            ),
            models.UniqueConstraint(
                fields=["event", "shared", "channel"],
                condition=Q(person__isnull=True),
                name="message_once_per_shared_channel",
            ),
            models.CheckConstraint(
                condition=Q(person__isnull=False, shared="") | (Q(person__isnull=True) & ~Q(shared="")),
                name="message_to_a_person_or_shared",
            ),
            models.CheckConstraint(
                condition=Q(
                    due_at__isnull=False,
                    delivered_at__isnull=True,
                    dropped_at__isnull=True,
                    given_up_at__isnull=True,
                )
                | Q(due_at__isnull=True),
                name="message_due_until_it_ended",
            ),
        ]
        indexes = [
            models.Index(fields=["channel", "due_at"], name="message_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["claim"], name="message_claim", condition=Q(due_at__isnull=False)),
            models.Index(
                fields=["-id"],
                name="message_undelivered",
                condition=Q(delivered_at__isnull=True, dropped_at__isnull=True, tries__gt=0),
            ),
            models.Index(fields=["created_at"], name="message_created"),
        ]

    def __str__(self) -> str:
        return f"{self.notice} to {self.shared or self.person_id} by {self.channel}"

    @property
    def problem_sentence(self) -> str:
        """Why the last try failed, in words; empty if none did."""
        return code_sentence(Problem, self.problem) if self.problem else ""


UNDELIVERED = Q(delivered_at__isnull=True, dropped_at__isnull=True, tries__gt=0)
"""Messages whose last try failed: given up, or to be tried again."""


class Preference(models.Model):
    """The channels and the time that a person chose for a group. Security cannot be chosen: it is always sent."""

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notification_preferences")
    group = models.CharField(max_length=16, choices=[(group.value, group.label) for group in CHOSEN_GROUPS])
    by_email = models.BooleanField(default=True)
    by_chat = models.BooleanField(default=True)
    digest = models.CharField(max_length=8, choices=Digest, default=Digest.AT_ONCE)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["person", "group"], name="preference_once_per_group"),
            models.CheckConstraint(condition=~Q(group=Group.SECURITY), name="security_is_always_told"),
        ]

    def __str__(self) -> str:
        return f"{self.group} of {self.person_id}"


class ChatChannel(EncryptedRow):
    """A person's own chat or push channel. Its URL holds a token: it is encrypted, and never shown again."""

    ENCRYPTED_FIELD = "encrypted_url"

    person = models.OneToOneField(
        User, on_delete=models.CASCADE, primary_key=True, related_name="chat_channel"
    )
    service = models.CharField(max_length=64)  # its name, such as "Slack"
    encrypted_url = models.BinaryField(editable=False)
    saved_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.service

    @property
    def bound_to(self) -> str:
        """The associated data of the encryption."""
        return f"notification-chat:{self.pk}"

    @property
    def owner(self) -> str:
        """Whose it is, for the message that it can no longer be decrypted."""
        return str(self.person.email)


def problem(code: Problem, **parameters: Any) -> dict[str, Any]:
    """The stored form of a problem."""
    return {"code": code.value, **parameters}


class DeliveryError(Exception):
    """It was not delivered, as far as known, and is tried again. `problem` holds the code and its parameters."""

    def __init__(self, code: Problem, **parameters: Any) -> None:
        super().__init__(code.value)
        self.problem = problem(code, **parameters)
