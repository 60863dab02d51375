"""Read entries for pages. One that was altered in the database and cannot be loaded is named instead of failing the
page.
"""

import logging
from datetime import datetime

from django.db import DataError
from django.db.models import QuerySet

from backoffice.audit.models import Entry

UNREADABLE = (ValueError, DataError)
"""What loading an entry raises whose time or JSON Python cannot represent."""

logger = logging.getLogger(__name__)


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
