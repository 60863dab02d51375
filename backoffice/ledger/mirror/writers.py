"""Bulk writes to the mirror for each database engine.

PostgreSQL: COPY into a temporary table and one merge statement. SQLite: `executemany` in the transaction that
holds the write lock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol

from django.db import connection

from backoffice.core.database.queries import batched
from backoffice.core.fields import EXACT, normalized_text, sortable_text
from backoffice.ledger.mirror.rows import COPY_NULL, DECIMAL_COLUMNS, RECORD_COLUMNS, TIME_COLUMNS, MirrorRow
from backoffice.ledger.mirror.totals import ExactSum, TotalKey
from backoffice.ledger.models import DayTotal

WRITTEN_COLUMNS = (*RECORD_COLUMNS, "facet_id", "digest", "changed_at")
ALL_COLUMNS = (*WRITTEN_COLUMNS, "occurred_at", "first_seen_at")
ON_CONFLICT = f"""
    ON CONFLICT (transaction_id) DO UPDATE SET
    {", ".join(f"{name} = EXCLUDED.{name}" for name in (*RECORD_COLUMNS, "facet_id", "digest"))},
    occurred_at = COALESCE(EXCLUDED.created_at, ledger_transaction.occurred_at),
    changed_at = COALESCE(EXCLUDED.changed_at, ledger_transaction.changed_at),
    missing_since = NULL
"""
_UNSETTLED = """
    SELECT staged.place, known.id FROM mirror_staged staged
    LEFT JOIN ledger_transaction known ON known.transaction_id = staged.transaction_id
    WHERE known.id IS NULL OR known.digest <> staged.digest OR known.missing_since IS NOT NULL
    OR known.first_seen_at >= %s
"""
_RECORD_SIGHTINGS = """
    INSERT INTO ledger_sighting (transaction_id)
    SELECT known.id FROM mirror_staged staged
    JOIN ledger_transaction known ON known.transaction_id = staged.transaction_id WHERE 1 = 1
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class RowWrite:
    """A row to insert or update. `changed_at` is None if its values did not change."""

    row: MirrorRow
    facet_id: int
    changed_at: datetime | None


class MergeWriter(Protocol):
    """Bulk writes for one database engine. Everything runs in the caller's transaction."""

    def stage(self, rows: Sequence[MirrorRow]) -> None:
        """Replace the contents of the temporary table `mirror_staged` with their ids and digests."""

    def write(self, writes: Sequence[RowWrite], now: datetime) -> None:
        """Insert the rows, or update those whose transaction ids exist."""

    def add_totals(self, sums: Mapping[TotalKey, ExactSum]) -> None:
        """Add each sum to its day total."""


def unsettled_rows(known_before: datetime | None) -> list[tuple[int, int | None]]:
    """Index and primary key (or None) of the staged rows that are not stored unchanged.

    With `known_before`, also those first seen at that time or later.
    """
    moment = connection.ops.adapt_datetimefield_value(known_before)
    with connection.cursor() as cursor:
        cursor.execute(_UNSETTLED, [moment])
        return list(cursor.fetchall())


def record_sightings() -> None:
    """Record for every staged row that the provider lists it."""
    with connection.cursor() as cursor:
        cursor.execute(_RECORD_SIGHTINGS)


_COPY_BLOCK = 500  # lines sent to the connection at once, about 100 kB
_COPY_COLUMNS = ", ".join(WRITTEN_COLUMNS)
_POSTGRESQL_TABLES = f"""
    CREATE TEMPORARY TABLE IF NOT EXISTS mirror_staged
    (place integer, transaction_id text, digest bytea) ON COMMIT DELETE ROWS;
    CREATE TEMPORARY TABLE IF NOT EXISTS mirror_incoming ON COMMIT DELETE ROWS AS
    SELECT 0 AS place, {_COPY_COLUMNS} FROM ledger_transaction WITH NO DATA;
    DELETE FROM mirror_staged; DELETE FROM mirror_incoming;
"""  # noqa: S608 - only names of our own columns
_POSTGRESQL_MERGE = f"""
    INSERT INTO ledger_transaction ({", ".join(ALL_COLUMNS)})
    SELECT {_COPY_COLUMNS}, COALESCE(created_at, %s), %s FROM mirror_incoming ORDER BY place
    {ON_CONFLICT}
"""  # noqa: S608 - the same names; every value is a parameter
_POSTGRESQL_ADD_TOTALS = """
    INSERT INTO ledger_daytotal (day, facet_id, count, amount, fee)
    SELECT * FROM unnest(%s::date[], %s::integer[], %s::bigint[], %s::numeric[], %s::numeric[])
    ON CONFLICT (day, facet_id) DO UPDATE SET count = ledger_daytotal.count + EXCLUDED.count,
    amount = ledger_daytotal.amount + EXCLUDED.amount, fee = ledger_daytotal.fee + EXCLUDED.fee
"""


class PostgresqlWriter:
    """See `MergeWriter`."""

    def stage(self, rows: Sequence[MirrorRow]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL_TABLES)
        lines = (
            f"{index}\t{row.line.partition(chr(9))[0]}\t\\\\x{row.digest.hex()}\n"
            for index, row in enumerate(rows)
        )
        _copy("mirror_staged (place, transaction_id, digest)", lines)

    def write(self, writes: Sequence[RowWrite], now: datetime) -> None:
        _copy(f"mirror_incoming ({_COPY_COLUMNS}, place)", map(_copy_line, writes, range(len(writes))))
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL_MERGE, [now, now])

    def add_totals(self, sums: Mapping[TotalKey, ExactSum]) -> None:
        days, facets = zip(*sums, strict=True)
        columns = [list(column) for column in (days, facets)]
        columns += [[getattr(added, name) for added in sums.values()] for name in ("count", "amount", "fee")]
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL_ADD_TOTALS, columns)


def _copy_line(row_write: RowWrite, index: int) -> str:
    row, changed_at = row_write.row, row_write.changed_at
    changed = COPY_NULL if changed_at is None else changed_at.isoformat()
    return f"{row.line}\t{row_write.facet_id}\t\\\\x{row.digest.hex()}\t{changed}\t{index}\n"


def _copy(into: str, lines: Iterable[str]) -> None:
    """Send the lines in blocks: one call per line would dominate the run time."""
    rest = iter(lines)
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        while block := "".join(islice(rest, _COPY_BLOCK)):
            copy.write(block)


_SQLITE_TABLE = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS mirror_staged (place integer, transaction_id text, digest blob)"
)
_SQLITE_STAGE = "INSERT INTO mirror_staged VALUES (%s, %s, %s)"
_SQLITE_MERGE = f"""
    INSERT INTO ledger_transaction ({", ".join(ALL_COLUMNS)})
    VALUES ({", ".join(["%s"] * len(ALL_COLUMNS))}) {ON_CONFLICT}
"""  # noqa: S608 - only names of our own columns; every value is a parameter
_DAYS_AT_ONCE = 500


class SqliteWriter:
    """See `MergeWriter`."""

    def stage(self, rows: Sequence[MirrorRow]) -> None:
        keys = [(index, row.record.transaction_id, row.digest) for index, row in enumerate(rows)]
        with connection.cursor() as cursor:
            cursor.execute(_SQLITE_TABLE)
            cursor.execute("DELETE FROM mirror_staged")
            cursor.executemany(_SQLITE_STAGE, keys)

    def write(self, writes: Sequence[RowWrite], now: datetime) -> None:
        seen_at = str(_sqlite_time(now))
        with connection.cursor() as cursor:
            cursor.executemany(_SQLITE_MERGE, [_parameters(row_write, seen_at) for row_write in writes])

    def add_totals(self, sums: Mapping[TotalKey, ExactSum]) -> None:
        """Add up in Python, since SQLite has no exact decimals.

        The write lock excludes concurrent changes.
        """
        known = {(total.day, total.facet_id): total for total in _totals_of(sorted({day for day, _ in sums}))}
        DayTotal.objects.bulk_create(
            [_added_total(known.get(key), key, added) for key, added in sums.items()],
            update_conflicts=True,
            unique_fields=["day", "facet"],
            update_fields=["count", "amount", "fee"],
        )


def _parameters(row_write: RowWrite, seen_at: str) -> list[Any]:
    values = row_write.row.values
    values["amount"] = sortable_text(values["amount"])
    for name in DECIMAL_COLUMNS[1:]:
        values[name] = None if values[name] is None else normalized_text(values[name])
    for name in TIME_COLUMNS:
        values[name] = _sqlite_time(values[name])
    digest, changed_at = row_write.row.digest, _sqlite_time(row_write.changed_at)
    occurred_at = values["created_at"] or seen_at
    return [*values.values(), row_write.facet_id, digest, changed_at, occurred_at, seen_at]


def _sqlite_time(value: datetime | None) -> str | None:
    """As Django stores it on SQLite; the connection's adapter is ten times slower."""
    return None if value is None else str(value.astimezone(UTC).replace(tzinfo=None))


def _totals_of(days: Sequence[Any]) -> Iterator[DayTotal]:
    for some in batched(days, _DAYS_AT_ONCE):
        yield from DayTotal.objects.filter(day__in=some)


def _added_total(known: DayTotal | None, key: TotalKey, added: ExactSum) -> DayTotal:
    count, amount, fee = (known.count, known.amount, known.fee) if known else (0, Decimal(0), Decimal(0))
    return DayTotal(
        day=key[0],
        facet_id=key[1],
        count=count + added.count,
        amount=EXACT.add(amount, added.amount),
        fee=EXACT.add(fee, added.fee),
    )
