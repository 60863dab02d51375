"""Archives of evidence: what was recorded in a time, in one signed file that verifies without the database.

The rows stay in the database: the audit log is one chain from its first entry, operations are compared with it each
minute, and triggers refuse to delete either. An archive is a copy that outlives the installation.
"""

import base64
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, Model

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import GENESIS, canonical_json, canonical_time, plain
from backoffice.audit.checkpoints import sign_content
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.storage.files import ARCHIVES, file_store
from backoffice.core.storage.retention import Keeping, TableRetention, declared_tables
from backoffice.retention.archive_file import ENTRIES, FORMAT, ArchiveWriter

_ROWS_AT_ONCE = 1000


class NothingToArchiveError(Exception):
    """No entry of the audit log is in this time, or the time is not past. The message says which."""


@dataclass(frozen=True)
class ArchiveSummary:
    """A new archive in the store."""

    name: str
    rows: int
    first: int
    last: int
    sha256: str


def archive_evidence(since: datetime, until: datetime) -> ArchiveSummary:
    """Write what was recorded from `since` until before `until` into a file of the store of archives.

    A row counts for the time at which it was recorded, and is archived as it is now. Raises NothingToArchiveError,
    ImproperlyConfigured without a key, OSError.
    """
    if since >= until:
        raise NothingToArchiveError("The last day must be after the first one.")
    if until > clock.now():
        raise NothingToArchiveError(f"These days are not over before {until:%Y-%m-%d %H:%M} UTC.")
    entries = Entry.objects.filter(at__gte=since, at__lt=until)
    ends = entries.aggregate(first=Min("position"), last=Max("position"))
    first, last = ends["first"], ends["last"]
    if first is None:
        raise NothingToArchiveError("The audit log has no entry in these days.")
    name = f"evidence-{since:%Y%m%dT%H%M%S}-{until:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}.jsonl.gz"
    part = settings.DATA_DIR / f"{name}.part"
    try:
        rows, sha256 = _write(part, (since, until), (first, last))
        file_store(ARCHIVES).put(part, name)
    finally:
        part.unlink(missing_ok=True)
    summary = ArchiveSummary(name, rows, first, last, sha256)
    with transaction.atomic():
        audit.record(
            Action.EVIDENCE_ARCHIVED,
            actor=None,
            target=name,
            first=first,
            last=last,
            rows=rows,
            sha256=sha256,
        )
    return summary


def _write(path: Path, period: tuple[datetime, datetime], positions: tuple[int, int]) -> tuple[int, str]:
    first, last = positions
    since, until = map(canonical_time, period)
    before = Entry.objects.filter(position=first - 1).values_list("hash", flat=True).first() or GENESIS
    path.touch(mode=0o600)
    with path.open("wb") as file:
        archive = ArchiveWriter(file)
        head = {"format": FORMAT, "since": since, "until": until, "made_at": canonical_time(clock.now())}
        archive.write({**head, "first": first, "previous_hash": before})
        end = before
        for entry in _in_order(Entry, {"position__gte": first, "position__lte": last}):
            archive.write_row(ENTRIES, {**entry.members(), "hash": entry.hash})
            end = entry.hash
        for table in declared_tables():
            if table.keeping == Keeping.EVIDENCE and table.model is not Entry:
                for row in _rows(table, *period):
                    archive.write_row(table.name, row)
        trailer = {"counts": archive.counts, "last": last, "hash": end, "sha256": archive.sha256}
        archive.close_with(_signed(trailer))
        file.flush()
        os.fsync(file.fileno())
    return archive.counts.total(), archive.sha256


def _signed(trailer: dict[str, object]) -> dict[str, object]:
    key_id, _ = sign_content(b"")
    with_key = {**trailer, "key": key_id}
    return {**with_key, "signature": sign_content(canonical_json(with_key))[1]}


def _rows(table: TableRetention, since: datetime, until: datetime) -> Iterator[dict[str, object]]:
    fields = [one.attname for one in table.model._meta.concrete_fields]
    for row in _in_order(table.model, {f"{table.since}__gte": since, f"{table.since}__lt": until}):
        yield {name: _storable(getattr(row, name)) for name in fields}


def _in_order(model: type[Model], which: dict[str, Any]) -> Iterator[Any]:
    """These rows by primary key, in pages: one cursor would hold them all in memory."""
    rows, after = model._default_manager.filter(**which).order_by("pk"), dict[str, Any]()
    while page := list(rows.filter(**after)[:_ROWS_AT_ONCE]):
        yield from page
        after = {"pk__gt": page[-1].pk}


def _storable(value: object) -> object:
    """The value as both databases give it: bytes in base64, the rest as in the audit log."""
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    return plain(value)
