"""Verify the hash chain of the audit log, and find the first broken entry.

A changed, removed, inserted, reordered or cut-off entry is found. Someone who can write to the database, drop
its triggers *and* recompute every hash could replace the whole log: `checkpoints` finds that.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeAlias

from django.db import connection
from django.db.models import QuerySet, TextChoices, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from backoffice.audit.canonical import GENESIS, canonical_time, digest
from backoffice.audit.log import UNREADABLE
from backoffice.audit.models import SENTENCES, ChainHead, Entry, hashed_members
from backoffice.core.web.formatting import code_sentence, exact_zoned_time, format_count

CHUNK_SIZE = 2000

logger = logging.getLogger(__name__)
Columns: TypeAlias = Mapping[str, Any]
"""An entry by the names of its columns."""


class FaultCode(TextChoices):
    """An inconsistency in the log. The label is the sentence about an entry, with its parameters in braces."""

    VERIFIED_ENTRY_CHANGED = (
        "checkpoint_changed",
        _("missing, or its hash differs from the one verified earlier"),
    )
    UNREADABLE = "unreadable", _("unreadable: one of its fields is invalid")
    NO_TIME = "no_time", _("unreadable: its time is invalid")
    MISSING = "missing", _("missing; the next one is entry {other}")
    NOT_FOLLOWING = "not_following", _("does not follow the entry before it")
    CONTENT_CHANGED = "content_changed", _("content does not match its hash")
    HEAD_MISSING = "head_missing", _("the record of the newest entry is missing")
    CUT_OFF = "cut_off", _("missing; the log was cut off: entry {other} is recorded as the newest")
    BEYOND_HEAD = "beyond_head", _("later than entry {other}, which is recorded as the newest")
    HEAD_DIFFERS = "head_differs", _("the record of the newest entry has another hash")
    OTHER_AT_CHECKPOINT = (
        "other_at_checkpoint",
        _("missing, or its hash differs from the checkpoint at {destination}"),
    )
    BEFORE_CHECKPOINT = (
        "before_checkpoint",
        _("missing; the log ends at entry {other}, before the checkpoint at {destination}"),
    )
    CHECKPOINT_FORGED = "checkpoint_forged", _("the signature of its checkpoint at {destination} is invalid")
    CHECKPOINT_KEY_UNKNOWN = (
        "checkpoint_key_unknown",
        _(
            "its checkpoint at {destination} was signed with the key {key}, which is not configured: configure "
            "that key again"
        ),
    )
    CHECKPOINT_LOST = "checkpoint_lost", _("its checkpoint is no longer at {destination}")


class ChainFault:
    """The first inconsistency in the log. `detail` holds its code and parameters, for the audit log."""

    def __init__(
        self, position: int, code: FaultCode, entry: Columns | None = None, **parameters: str | int
    ) -> None:
        self.position, self.code = position, code
        about = {"action": entry["action"], "at": canonical_time(entry["at"])} if entry else {}
        self.detail = {"code": code.value, "position": position, **about, **parameters}

    def __str__(self) -> str:
        return fault_sentence(self.detail)


def fault_sentence(fault: Mapping[str, Any]) -> str:
    """A recorded fault in words; `none` if there was none."""
    if not fault:
        return gettext("none")
    position, problem = format_count(fault["position"]), code_sentence(FaultCode, fault)
    if "action" not in fault:
        return gettext("entry {position}: {problem}").format(position=position, problem=problem)
    time = exact_zoned_time(datetime.fromisoformat(fault["at"]))
    sentence = gettext("entry {position} ({action}, {time}): {problem}")
    return sentence.format(position=position, action=fault["action"], time=time, problem=problem)


SENTENCES["fault"] = fault_sentence


@dataclass(frozen=True)
class VerifiedPosition:
    """An entry up to which the log was verified earlier."""

    position: int = 0
    hash: str = GENESIS


@dataclass(frozen=True)
class ChainVerification:
    """The number of entries verified, the newest of them, and the fault that ended the verification, if any."""

    verified: int
    newest_hash: str
    fault: ChainFault | None = None

    @property
    def is_intact(self) -> bool:
        """Whether the log is consistent."""
        return self.fault is None

    def __str__(self) -> str:
        if self.fault:
            return str(self.fault)
        sentence = ngettext(
            "{count} entry verified; its chain is intact",
            "{count} entries verified; their chain is intact",
            self.verified,
        )
        return sentence.format(count=format_count(self.verified))


def verify_chain() -> ChainVerification:
    """Verify the whole log in constant memory and without a lock; others may append meanwhile.

    An append commits the entry and the head together. So every entry up to the head read *before* the
    verification must be found, and none beyond the head read *after* it.
    """
    before = _head()
    verdict = _verify_entries(VerifiedPosition(), _entries_after(None))
    return verdict if verdict.fault else _with_end_fault(before, verdict)


def verify_since(checkpoint: VerifiedPosition, *, at_most: int) -> ChainVerification:
    """The same for entries after the checkpoint, at most so many at a time. The entry of the checkpoint must
    be unchanged.

    A change before the checkpoint is found by `verify_chain` only.
    """
    before = _head()
    if (
        checkpoint.position
        and not Entry.objects.filter(position=checkpoint.position, hash=checkpoint.hash).exists()
    ):
        fault = ChainFault(checkpoint.position, FaultCode.VERIFIED_ENTRY_CHANGED)
        return ChainVerification(checkpoint.position, checkpoint.hash, fault)
    verdict = _verify_entries(checkpoint, islice(_entries_after(checkpoint.position or None), at_most))
    if verdict.fault or verdict.verified - checkpoint.position >= at_most:
        return verdict
    return _with_end_fault(before, verdict)


def _verify_entries(checkpoint: VerifiedPosition, entries: Iterator[Columns]) -> ChainVerification:
    """Whether these entries follow the checkpoint and each other."""
    position, newest_hash = checkpoint.position, checkpoint.hash
    try:
        for entry in entries:
            if fault := _entry_fault(entry, position, newest_hash):
                return ChainVerification(position, newest_hash, fault)
            position, newest_hash = entry["position"], entry["hash"]
    except UNREADABLE as exc:
        logger.warning("Entry %d of the audit log cannot be read: %s", position + 1, exc)
        fault = ChainFault(position + 1, FaultCode.UNREADABLE)
        return ChainVerification(position, newest_hash, fault)
    return ChainVerification(position, newest_hash)


def _with_end_fault(before: ChainHead | None, verdict: ChainVerification) -> ChainVerification:
    return replace(verdict, fault=_end_fault(before, verdict.verified, verdict.newest_hash))


def _entries_after(position: int | None) -> Iterator[Columns]:
    """Every entry after this position, or all, in order. Raises ValueError after the last one that can be
    read.

    Read in pages and not with one cursor, for which PostgreSQL would materialise the whole log first. As plain columns:
    to make an object of each takes longer than to hash it.
    """
    size = CHUNK_SIZE
    while True:
        try:
            page = list(_queryset_after(position).order_by("position").values()[:size])
        except UNREADABLE:
            if size == 1:
                raise
            size = 1
            continue
        if not page:
            return
        yield from page
        position = page[-1]["position"]


def _queryset_after(position: int | None) -> QuerySet[Entry]:
    """With the texts of JSON and time on SQLite, which keeps every text as it was written."""
    entries = Entry.objects.all() if position is None else Entry.objects.filter(position__gt=position)
    if connection.vendor != "sqlite":
        return entries
    return entries.annotate(detail_text=Cast("detail", TextField()), at_text=Cast("at", TextField()))


def _reads_in_two_ways(entry: Columns) -> bool:
    """Whether its texts are others than Django writes, so that queries may find other values than the hash covers.

    Of a name that occurs twice in JSON, SQLite takes the first value and Python the last; a time with an offset is
    sorted as text.
    """
    if "detail_text" not in entry:
        return False
    at = str(entry["at"].astimezone(UTC).replace(tzinfo=None))
    return bool(entry["at_text"] != at or _has_repeated_name(entry["detail_text"]))


def _has_repeated_name(text: str) -> bool:
    repeated = False

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) < len(pairs)
        return found

    json.loads(text, object_pairs_hook=members)
    return repeated


def _head() -> ChainHead | None:
    return ChainHead.objects.filter(pk=1).first()


def _entry_fault(entry: Columns, position: int, previous_hash: str) -> ChainFault | None:
    if entry["position"] != position + 1:
        return ChainFault(position + 1, FaultCode.MISSING, other=entry["position"])
    if not isinstance(entry["at"], datetime):
        return ChainFault(position + 1, FaultCode.NO_TIME)
    if entry["previous_hash"] != previous_hash:
        return ChainFault(position + 1, FaultCode.NOT_FOLLOWING, entry)
    if entry["hash"] != digest(hashed_members(entry)):
        return ChainFault(position + 1, FaultCode.CONTENT_CHANGED, entry)
    if _reads_in_two_ways(entry):
        return ChainFault(position + 1, FaultCode.CONTENT_CHANGED, entry)
    return None


def _end_fault(before: ChainHead | None, position: int, newest_hash: str) -> ChainFault | None:
    after = _head()
    if before is None or after is None:
        return ChainFault(position, FaultCode.HEAD_MISSING)
    if position < before.position:
        return ChainFault(position + 1, FaultCode.CUT_OFF, other=before.position)
    if position > after.position:
        return ChainFault(after.position + 1, FaultCode.BEYOND_HEAD, other=after.position)
    if position == after.position and newest_hash != after.hash:
        return ChainFault(position, FaultCode.HEAD_DIFFERS)
    return None
