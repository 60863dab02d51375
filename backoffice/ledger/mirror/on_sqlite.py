"""SQLite: the same by `executemany`, in the transaction that has held the only write lock since its beginning."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from backoffice.core.fields import normal_text, padded_text
from backoffice.ledger.mirror.rows import DECIMALS, MOMENTS, Row
from backoffice.ledger.mirror.totals import EXACT, Key, Sum
from backoffice.ledger.mirror.writing import COLUMNS, ON_CONFLICT, Writing
from backoffice.ledger.mirrored import DayTotal

_TABLE = "CREATE TEMPORARY TABLE IF NOT EXISTS mirror_told (place integer, transaction_id text, digest blob)"
_NOTE = "INSERT INTO mirror_told VALUES (%s, %s, %s)"
_MERGE = f"""
    INSERT INTO ledger_transaction ({", ".join(COLUMNS)})
    VALUES ({", ".join(["%s"] * len(COLUMNS))}) {ON_CONFLICT}
"""  # noqa: S608 - only names of our own columns (`writing`); every value is a parameter
_DAYS_AT_ONCE = 500


class OnSqlite:
    """See `Writer`."""

    def note(self, rows: Sequence[Row]) -> None:
        keys = [(place, row.record.transaction_id, row.digest) for place, row in enumerate(rows)]
        with connection.cursor() as cursor:
            cursor.execute(_TABLE)
            cursor.execute("DELETE FROM mirror_told")
            cursor.executemany(_NOTE, keys)

    def write(self, writings: Sequence[Writing], now: datetime) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(_MERGE, [_parameters(writing, now) for writing in writings])

    def add(self, sums: Mapping[Key, Sum]) -> None:
        """Read, added up here and written: SQLite has no exact numbers, and nobody else writes meanwhile."""
        known = {(total.day, total.facet_id): total for total in _totals_of(sorted({day for day, _ in sums}))}
        DayTotal.objects.bulk_create(
            [_added(known.get(key), key, found) for key, found in sums.items()],
            update_conflicts=True,
            unique_fields=["day", "facet"],
            update_fields=["count", "amount", "fee"],
        )


def _parameters(writing: Writing, now: datetime) -> list[Any]:
    values = writing.row.values
    occurred_at = values["created_at"] or now
    values["amount"] = padded_text(values["amount"])
    for name in DECIMALS[1:]:
        values[name] = None if values[name] is None else normal_text(values[name])
    for name in MOMENTS:
        values[name] = _moment(values[name])
    digest, changed_at = writing.row.digest, _moment(writing.changed_at)
    return [*values.values(), writing.facet_id, digest, changed_at, _moment(occurred_at), _moment(now)]


def _moment(value: datetime | None) -> str | None:
    """As Django keeps it on SQLite; asking its connection for each costs ten times as much."""
    return None if value is None else str(value.astimezone(UTC).replace(tzinfo=None))


def _totals_of(days: Sequence[Any]) -> Iterator[DayTotal]:
    for first in range(0, len(days), _DAYS_AT_ONCE):
        yield from DayTotal.objects.filter(day__in=days[first : first + _DAYS_AT_ONCE])


def _added(known: DayTotal | None, key: Key, found: Sum) -> DayTotal:
    count, amount, fee = (known.count, known.amount, known.fee) if known else (0, Decimal(0), Decimal(0))
    return DayTotal(
        day=key[0],
        facet_id=key[1],
        count=count + found.count,
        amount=EXACT.add(amount, found.amount),
        fee=EXACT.add(fee, found.fee),
    )
