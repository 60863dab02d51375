"""What both engines' writers offer to the merge, and the SQL that is the same for both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from django.db import connection

from backoffice.ledger.mirror.rows import TOLD, Row
from backoffice.ledger.mirror.totals import Key, Sum

KEPT = (*TOLD, "facet_id", "digest", "changed_at")
COLUMNS = (*KEPT, "occurred_at", "first_seen_at")
ON_CONFLICT = f"""
    ON CONFLICT (transaction_id) DO UPDATE SET
    {", ".join(f"{name} = EXCLUDED.{name}" for name in (*TOLD, "facet_id", "digest"))},
    occurred_at = COALESCE(EXCLUDED.created_at, ledger_transaction.occurred_at),
    changed_at = COALESCE(EXCLUDED.changed_at, ledger_transaction.changed_at),
    missing_since = NULL
"""
_NOT_SETTLED = """
    SELECT told.place, known.id FROM mirror_told told
    LEFT JOIN ledger_transaction known ON known.transaction_id = told.transaction_id
    WHERE known.id IS NULL OR known.digest <> told.digest OR known.missing_since IS NOT NULL
    OR known.first_seen_at >= %s
"""
_SEEN = """
    INSERT INTO ledger_sighting (transaction_id)
    SELECT known.id FROM mirror_told told
    JOIN ledger_transaction known ON known.transaction_id = told.transaction_id WHERE 1 = 1
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Writing:
    """A row to be inserted, or to take the place of what was told before. `changed_at` is None if nothing changed."""

    row: Row
    facet_id: int
    changed_at: datetime | None


class Writer(Protocol):
    """How one engine takes many rows at once. Everything happens in the caller's transaction."""

    def note(self, rows: Sequence[Row]) -> None:
        """Put id and digest of these, and nothing else, into the temporary table `mirror_told`."""

    def write(self, writings: Sequence[Writing], now: datetime) -> None:
        """Insert the rows, or update those whose ids are known."""

    def add(self, sums: Mapping[Key, Sum]) -> None:
        """Add each sum to its total."""


def not_settled(known_before: datetime | None) -> list[tuple[int, int | None]]:
    """Of the rows that were noted, those that are not here as they were told: place among them, and id or None.

    With `known_before` also those that were first seen at that moment or later.
    """
    moment = connection.ops.adapt_datetimefield_value(known_before)
    with connection.cursor() as cursor:
        cursor.execute(_NOT_SETTLED, [moment])
        return list(cursor.fetchall())


def note_sightings() -> None:
    """Remember of every row that was noted that the service's list has it."""
    with connection.cursor() as cursor:
        cursor.execute(_SEEN)
