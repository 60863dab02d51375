"""Append to the audit log, and read its entries for pages.

`record` and `record_all` are the only way to write to it; entries cannot be changed.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DataError, connection, models
from django.db.models import QuerySet
from django.utils import translation

from backoffice.audit.actions import Action
from backoffice.audit.canonical import AuditError, plain, storable_text
from backoffice.audit.models import ChainHead, Entry
from backoffice.core import clock
from backoffice.core.web import request_context

logger = logging.getLogger(__name__)

SYSTEM = "Countersign"
ANONYMOUS = "Someone not signed in"
_SELECT_HEAD = "SELECT position, hash FROM audit_chainhead WHERE id = 1"
_MOVE_HEAD = (
    "UPDATE audit_chainhead SET position = %s, hash = %s WHERE id = 1 AND position = %s AND hash = %s"
)


class OutsideTransactionError(AuditError):
    """`record` was called outside a transaction: the change could be stored without its entry."""


class ChainMovedError(AuditError):
    """Another transaction appended between reading and updating the head of the chain; the caller rolls back."""


class HeadMissingError(AuditError):
    """The row with the record of the newest entry is missing: the log has been tampered with, and nothing can be
    appended.
    """


def record(
    action: Action,
    *,
    actor: AbstractBaseUser | None,
    target: models.Model | str | None = None,
    **detail: object,
) -> Entry:
    """Append one entry in the caller's transaction, so that the change and its entry are both stored or
    neither is.

    Call it last in a service: the head of the chain stays locked until the commit, and locking another row
    after it can cause a deadlock. `actor` is None if nobody is signed in or the program acts; `target` is a
    row, or the name of something without one ("the operations report"). Raises OutsideTransactionError,
    ChainMovedError, HeadMissingError, and NotRecordableError for a detail without a stable form.
    """
    [entry] = record_all([NewEntry(action, actor, target, detail)])
    return entry


@dataclass(frozen=True)
class NewEntry:
    """The arguments of `record` for one entry, for `record_all`."""

    action: Action
    actor: AbstractBaseUser | None
    target: models.Model | str | None = None
    detail: dict[str, object] = field(default_factory=dict)


def record_all(new: Iterable[NewEntry]) -> list[Entry]:
    """Append these entries in this order, with one lock of the head for all. Raises as `record`."""
    new = list(new)
    if not connection.in_atomic_block:
        actions = ", ".join({one.action.value: None for one in new})
        raise OutsideTransactionError(f"{actions} must be recorded in the transaction of the change")
    with translation.override(settings.LANGUAGE_CODE):  # the log is in one language, whoever acts
        contents = [(one, plain(one.detail), _target_members(one.target)) for one in new]
    head, call, now = _locked_head(), request_context.current(), clock.now()
    entries: list[Entry] = []
    for one, details, target_members in contents:
        entry = Entry(
            position=head.position + len(entries) + 1,
            at=now,
            actor_id=None if one.actor is None else one.actor.pk,
            actor_label=_actor_label(one.actor),
            address=storable_text(call.address or ""),
            request_id=storable_text(call.request_id),
            action=one.action.value,
            detail=details,
            previous_hash=entries[-1].hash if entries else head.hash,
            **target_members,
        )
        entry.hash = entry.digest()
        entries.append(entry)
    if entries:
        advance_head(entries)
    Entry.objects.bulk_create(entries)
    return entries


def position() -> int:
    """The position of the newest entry that is committed; 0 if there is none. Locks nothing."""
    return ChainHead.objects.filter(pk=1).values_list("position", flat=True).first() or 0


def lock() -> None:
    """Lock the log until the end of the transaction: until then no other change with an audit entry can commit.

    Lock other rows before it, as for `record`. Raises HeadMissingError.
    """
    _locked_head()


def _locked_head() -> ChainHead:
    """In plain SQL, as below: every writer waits for whoever has this lock, and the ORM takes several times as long."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_HEAD + (" FOR UPDATE" if connection.features.has_select_for_update else ""))
        row = cursor.fetchone()
    if row is None:
        raise HeadMissingError("The head of the audit log is missing; run verify_audit")
    return ChainHead(1, *row)


def advance_head(entries: Sequence[Entry]) -> None:
    """Make the last of these entries the end of the chain, if the head is still the one that the first of them
    follows (compare and set).

    One after the other, since a trigger lets the head move by one. Locks alone do not prevent two entries with the
    same predecessor, since SQLite has no row locks. Raises ChainMovedError.
    """
    moves = [(entry.position, entry.hash, entry.position - 1, entry.previous_hash) for entry in entries]
    with connection.cursor() as cursor:
        cursor.executemany(_MOVE_HEAD, moves)
        if cursor.rowcount != len(moves):
            raise ChainMovedError(f"Another entry took position {entries[0].position}")


def _actor_label(actor: AbstractBaseUser | None) -> str:
    if actor is not None:
        return storable_text(str(actor))
    return ANONYMOUS if request_context.current().by_request else SYSTEM


def _target_members(target: models.Model | str | None) -> dict[str, str]:
    if not isinstance(target, models.Model):
        return {"target_label": storable_text(target or "")}
    return {
        "target_type": target._meta.label_lower,
        "target_id": str(target.pk),
        "target_label": storable_text(str(target)),
    }


UNREADABLE = (ValueError, DataError)
"""What loading an entry raises whose time or JSON Python cannot represent."""


def read_entries(entries: QuerySet[Entry]) -> list[Entry]:
    """These entries, in their order; in the place of each that cannot be read, one with its position alone
    (`Entry.is_unreadable`).

    One query. Only if an entry cannot be read, each is read by itself.
    """
    try:
        return [_with_time(entry) for entry in entries]
    except UNREADABLE as exc:
        logger.warning("An entry of the audit log cannot be read: %s", exc)
    return [_read_alone(position) for position in entries.values_list("position", flat=True)]


def _read_alone(position: int) -> Entry:
    try:
        return _with_time(Entry.objects.get(position=position))
    except UNREADABLE:
        return Entry(position=position)


def _with_time(entry: Entry) -> Entry:
    """The entry; without its content if its time, which SQLite stores as text, was replaced by another text."""
    return entry if isinstance(entry.at, datetime) else Entry(position=entry.position)
