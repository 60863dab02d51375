"""Deliver what is due in the outbox. Jobs of the sweeper, one for each channel, so that none waits for another.

All due messages of a recipient go out together. They are claimed by compare-and-set, so two sweepers do not deliver one
twice; if the process dies, they are due again when the claim ends. A process that dies after the delivery and before it
is recorded leaves a second copy with the same id, never none.
"""

import logging
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import chain
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.urls import reverse
from django.utils import timezone, translation

from backoffice.accounts.models import Language, User
from backoffice.core import background, clock, fault_points
from backoffice.core.encryption import DecryptionError
from backoffice.notifications.channels.chat import send_chat, send_own_chat
from backoffice.notifications.channels.email import send_email
from backoffice.notifications.channels.webhook import send_webhook
from backoffice.notifications.contents import Contents, contents_of, operations_of
from backoffice.notifications.events import Group, Notice
from backoffice.notifications.models import Channel, ChatChannel, DeliveryError, Message, Problem
from backoffice.notifications.recording.outbox import audit_position, shared_address
from backoffice.operations.approval.escalation import outdated
from backoffice.operations.approval.waiting import operations_waiting_for
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import VIEW
from backoffice.operations.states import Status

logger = logging.getLogger(__name__)
CLAIMED_FOR = timedelta(minutes=5)  # much longer than any delivery takes
RECIPIENTS_AT_ONCE = 50  # of one round
EVENTS_AT_ONCE = {Channel.EMAIL: 500, Channel.CHAT: 500, Channel.WEBHOOK: 50}  # of one recipient
LISTED = {Channel.EMAIL: 50, Channel.CHAT: 10, Channel.WEBHOOK: 50}  # of these; the rest is counted
FIRST_RETRY, LAST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_DECISIONS = frozenset({Notice.WAITS, Notice.EXPIRES_SOON})
_ESCALATIONS = frozenset({Notice.ESCALATED, Notice.WITHOUT_APPROVERS})
_SERVER_IS_AWAY = {Problem.NOT_REACHED, Problem.TIMED_OUT}

Recipient = tuple[int | None, str]  # the id of a person, or the name of a shared channel


def deliver_due(channel: Channel) -> int:
    """Deliver the due messages of one channel; returns how many were delivered. Safe to call concurrently."""
    due = Message.objects.filter(channel=channel, due_at__lte=clock.recent())
    recipients = due.order_by().values_list("person", "shared").distinct()[:RECIPIENTS_AT_ONCE]
    delivered = 0
    for recipient in list(recipients):
        if background.stop_requested.is_set():
            break
        try:
            delivered += _deliver_to(channel, recipient)
        except DeliveryError as exc:
            if channel == Channel.EMAIL and exc.problem["code"] in _SERVER_IS_AWAY:
                break  # all mails go through one server: the others are tried in a later round
    return delivered


def _deliver_to(channel: Channel, recipient: Recipient) -> int:
    """Claim and deliver what is due for one recipient. Raises DeliveryError once the failure is stored."""
    claim = secrets.token_hex(16)
    messages = _claimed(channel, recipient, claim)
    if not messages:
        return 0
    fault_points.reach("notifications.claimed")
    mine = Message.objects.filter(claim=claim, due_at__isnull=False)
    operations = operations_of(messages)
    person = User.objects.get(pk=recipient[0]) if recipient[0] is not None else None
    wanted = _still_wanted(messages, person)
    mine.exclude(pk__in=[one.pk for one in wanted]).update(due_at=None, dropped_at=clock.now())
    if not wanted:
        return 0
    try:
        _send(channel, recipient, person, wanted, operations)
    except DeliveryError as exc:
        _record_failure(mine, exc)
        raise
    return mine.update(due_at=None, delivered_at=clock.now(), problem={})


def _claimed(channel: Channel, recipient: Recipient, claim: str) -> list[Message]:
    """The messages that this call has claimed. No other process delivers them until the claim ends."""
    now = clock.now()
    person, shared = recipient
    due = Message.objects.filter(channel=channel, person=person, shared=shared, due_at__lte=now)
    ids = list(due.order_by("pk").values_list("pk", flat=True)[: EVENTS_AT_ONCE[channel]])
    # The condition again: of two processes that selected the same rows, one changes them.
    Message.objects.filter(pk__in=ids, due_at__lte=now).update(claim=claim, due_at=now + CLAIMED_FOR)
    return list(Message.objects.filter(claim=claim, due_at__isnull=False).order_by("pk"))


def _still_wanted(messages: list[Message], person: User | None) -> list[Message]:
    """The messages that still apply: no escalation that is over, nothing that was released again, nothing that the
    person need not decide any more. For a deactivated person only those of security.
    """
    messages = _without_past_escalations(messages)
    messages = _without_released_again(messages)
    if person is None:
        return messages
    if not person.is_active:
        return [one for one in messages if one.group == Group.SECURITY]
    asked = {one.operation for one in messages if one.operation and one.notice in _DECISIONS}
    waiting = (
        set(operations_waiting_for(person).filter(pk__in=asked).values_list("pk", flat=True))
        if asked
        else set()
    )
    return [one for one in messages if one.notice not in _DECISIONS or one.operation in waiting]


def _without_past_escalations(messages: list[Message]) -> list[Message]:
    """Without escalations whose level was decided or has enough people again, or whose operation no longer waits."""
    escalations = [one for one in messages if one.notice in _ESCALATIONS]
    if not escalations:
        return messages
    positions = {one.pk: found for one in escalations if (found := audit_position(one.event)) is not None}
    to_send = {one.operation for one in escalations if one.operation and one.pk not in positions}
    waiting = set(_unsent().filter(pk__in=to_send).values_list("pk", flat=True))
    past = outdated(positions.values())
    dropped = {
        one.pk
        for one in escalations
        if (positions[one.pk] in past if one.pk in positions else one.operation not in waiting)
    }
    return [one for one in messages if one.pk not in dropped]


def _unsent() -> QuerySet[Operation]:
    """What is approved and not released."""
    return Operation.objects.filter(status=Status.APPROVED, expires_at__gt=clock.now(), release__isnull=True)


def _without_released_again(messages: list[Message]) -> list[Message]:
    """Without releases that ended unsent if the operation, or every row of the batch, was released again, or closed."""
    asked = {one.operation for one in messages if one.operation and one.notice == Notice.NOT_SENT}
    if not asked:
        return messages
    unsent = _unsent().filter(Q(pk__in=asked) | Q(batch_row__batch__in=asked))
    left = set(chain.from_iterable(unsent.values_list("pk", "batch_row__batch")))
    return [one for one in messages if one.notice != Notice.NOT_SENT or one.operation in left]


def _send(
    channel: Channel,
    recipient: Recipient,
    person: User | None,
    messages: list[Message],
    operations: dict[UUID, Operation],
) -> None:
    language, zone = _language(person), ZoneInfo(person.time_zone if person else settings.TIME_ZONE)
    with translation.override(language), timezone.override(zone):
        contents = contents_of(
            messages,
            operations,
            listed=LISTED[channel],
            settings_url=f"{settings.PUBLIC_URL}{reverse('notifications:preferences')}" if person else "",
            with_sentences=settings.NOTIFY_SENTENCES and (person is None or person.has_perm(VIEW)),
        )
        # The same at every try of the same events, so that a receiver recognises a second copy.
        message_id = f"notification-{messages[0].pk}-{messages[-1].pk}-{len(messages)}"
        _SENDERS[channel](recipient, person, contents, message_id)


def _language(person: User | None) -> str:
    if person is None or person.language == Language.AUTO:
        return str(settings.NOTIFY_LANGUAGE)
    return person.language


def _send_email(recipient: Recipient, person: User | None, contents: Contents, message_id: str) -> None:
    send_email(
        contents, to=person.email if person else _shared(Channel.EMAIL, recipient), message_id=message_id
    )


def _send_chat(recipient: Recipient, person: User | None, contents: Contents, _message_id: str) -> None:
    if person is None:
        send_chat(contents, url=_shared(Channel.CHAT, recipient))
        return
    own = ChatChannel.objects.filter(person=person).first()
    if own is None:
        raise DeliveryError(Problem.NOT_CONFIGURED)
    try:
        url = own.decrypted()
    except DecryptionError as exc:
        raise DeliveryError(Problem.UNREADABLE) from exc
    send_own_chat(contents, url=url)


def _send_webhook(recipient: Recipient, _person: User | None, contents: Contents, message_id: str) -> None:
    send_webhook(contents, url=_shared(Channel.WEBHOOK, recipient), message_id=message_id)


_SENDERS: dict[Channel, Callable[[Recipient, User | None, Contents, str], None]] = {
    Channel.EMAIL: _send_email,
    Channel.CHAT: _send_chat,
    Channel.WEBHOOK: _send_webhook,
}


def _shared(channel: Channel, recipient: Recipient) -> str:
    address = shared_address(channel, recipient[1])
    if address is None:
        raise DeliveryError(Problem.NOT_CONFIGURED)
    return address


@transaction.atomic
def _record_failure(mine: QuerySet[Message], error: DeliveryError) -> None:
    """Give up what is too old; try the rest again after a time that doubles."""
    now = clock.now()
    failed = {"problem": error.problem, "claim": "", "tries": F("tries") + 1}
    too_old = mine.filter(created_at__lte=now - timedelta(hours=settings.NOTIFY_GIVE_UP_HOURS))
    given_up = too_old.update(due_at=None, given_up_at=now, **failed)
    tries = mine.aggregate(most=Max("tries"))["most"] or 0
    retried = mine.update(due_at=now + min(FIRST_RETRY * 2 ** min(tries, 10), LAST_RETRY), **failed)
    logger.warning(
        "Notifications not delivered (%s): %d to be tried again, %d given up", error, retried, given_up
    )


deliver_email_due = partial(deliver_due, Channel.EMAIL)
deliver_chat_due = partial(deliver_due, Channel.CHAT)
deliver_webhooks_due = partial(deliver_due, Channel.WEBHOOK)
