"""Turn new audit entries into messages. A job of the sweeper.

An event and its audit entry are in one commit, so none is lost: the cursor advances in the commit that stores the
messages, and an entry that is read again makes no second one.
"""

import logging
import time
from dataclasses import replace

from django.core.exceptions import ValidationError
from django.db import DataError, transaction
from django.urls import reverse

from backoffice.audit.actions import Action
from backoffice.audit.models import ChainHead, Entry
from backoffice.core import background, fault_points, isolation
from backoffice.notifications.events import EVENTS, Event, is_notified
from backoffice.notifications.models import AuditCursor
from backoffice.notifications.recording.audiences import People, operation_ids
from backoffice.notifications.recording.outbox import Happening, Outbox, audit_event
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.reports.models import ExportJob

logger = logging.getLogger(__name__)
ENTRIES_AT_ONCE = 200
ROUND_SECONDS = 5.0  # after which a round ends, so that the job's heartbeat stays recent


class CursorMovedError(Exception):
    """Another sweeper read the same entries; the transaction is rolled back."""


def record_events_due() -> int:
    """Store the messages of the entries after the cursor; returns how many messages. Safe to call concurrently."""
    stored, until = 0, time.monotonic() + ROUND_SECONDS
    while is_behind() and time.monotonic() < until and not background.stop_requested.is_set():
        try:
            stored += _record_next()
        except CursorMovedError:
            break  # the next round continues from where the other one is
    return stored


def is_behind() -> bool:
    """Whether the log has entries after the cursor."""
    read = AuditCursor.objects.filter(pk=1).values_list("position", flat=True).first() or 0
    head = ChainHead.objects.filter(pk=1).values_list("position", flat=True).first() or 0
    return head > read


@transaction.atomic
def _record_next() -> int:
    cursor, _ = AuditCursor.objects.select_for_update().get_or_create(pk=1)
    entries, last = _entries_after(cursor.position)
    if last is None:
        return 0
    notifying = [entry for entry in entries if is_notified(entry.action, entry.detail)]
    people, outbox = People(operation_ids(notifying)), Outbox()
    for entry in notifying:
        _add_all(outbox, people, entry)
    stored = outbox.store()
    advanced = AuditCursor.objects.filter(pk=1, position=cursor.position).update(position=last)
    if advanced != 1:
        raise CursorMovedError
    fault_points.reach("notifications.recorded")
    return stored


def _entries_after(position: int) -> tuple[list[Entry], int | None]:
    """The next entries that can be read, and the position of the last one, readable or not; None if there is none."""
    following = Entry.objects.filter(position__gt=position).order_by("position")
    try:
        entries = list(following[:ENTRIES_AT_ONCE])
    except (ValueError, DataError):  # a forged column may hold a time that Python cannot represent
        positions = list(following.values_list("position", flat=True)[:ENTRIES_AT_ONCE])
        return [entry for one in positions for entry in _readable(one)], positions[-1]
    return entries, entries[-1].position if entries else None


def _readable(position: int) -> list[Entry]:
    try:
        return list(Entry.objects.filter(position=position))
    except (ValueError, DataError):
        logger.exception("Entry %d of the audit log cannot be read; it notifies nobody", position)
        isolation.count_failed_row()
        return []


def _add_all(outbox: Outbox, people: People, entry: Entry) -> None:
    """Add the messages of an entry. One that cannot be read must not hold back the messages of all others."""
    try:
        for event in EVENTS[Action(entry.action)]:
            _add(outbox, people, entry, event)
    except (AttributeError, LookupError, TypeError, ValueError, ValidationError):
        logger.exception("Entry %d of the audit log cannot be read", entry.position)
        isolation.count_failed_row()


def _add(outbox: Outbox, people: People, entry: Entry, event: Event) -> None:
    concerned = people.concerned_by(entry)
    operation = concerned.operation
    if operation and not event.for_batch_rows and operation.pk in people.batches:
        return
    if event.pending is not None and event.pending != (entry.detail.get("status") == Status.PENDING):
        return
    if entry.action in _OF_EXPORTS and _has_email_of_its_own(entry):
        return
    happening = Happening(
        event=audit_event(entry.position, event.notice),
        notice=event.notice,
        group=event.group,
        at=entry.at,
        path=reverse(event.page) if event.page else entry.target_url or reverse("operations:overview"),
        people=people.notified(event.audience, concerned),
        operation=operation.pk if operation else None,
    )
    if event.gathered:
        happening = _gathered(happening, people.batches.get(operation.pk) if operation else None)
    outbox.add(happening)


def _gathered(happening: Happening, batch: Operation | None) -> Happening:
    """The same at the next full minute, together with the others of that minute; for all rows of a batch, one of the
    batch in an hour.
    """
    at_minute = replace(happening, at_full_minute=True)
    if batch is None:
        return at_minute
    event = f"batch:{batch.pk}:{happening.at:%Y%m%d%H}:{happening.notice}"
    return replace(at_minute, event=event, operation=batch.pk, path=batch.get_absolute_url())


_OF_EXPORTS = frozenset({Action.EXPORT_COMPLETED, Action.EXPORT_FAILED})


def _has_email_of_its_own(entry: Entry) -> bool:
    """Whether the export was made by a schedule, which mails its recipients and its owner itself."""
    return ExportJob.objects.filter(pk=entry.detail.get("export"), schedule__isnull=False).exists()
