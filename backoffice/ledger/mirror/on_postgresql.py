"""PostgreSQL: rows arrive in a temporary table by COPY, in large blocks, and one statement merges them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice

from django.db import connection

from backoffice.ledger.mirror.rows import NULL, Row
from backoffice.ledger.mirror.totals import Key, Sum
from backoffice.ledger.mirror.writing import COLUMNS, KEPT, ON_CONFLICT, Writing

_BLOCK = 500  # lines that are given to the connection at once: some 100 kB
_NAMES = ", ".join(KEPT)
_TABLES = f"""
    CREATE TEMPORARY TABLE IF NOT EXISTS mirror_told
    (place integer, transaction_id text, digest bytea) ON COMMIT DELETE ROWS;
    CREATE TEMPORARY TABLE IF NOT EXISTS mirror_incoming ON COMMIT DELETE ROWS AS
    SELECT 0 AS place, {_NAMES} FROM ledger_transaction WITH NO DATA;
    DELETE FROM mirror_told; DELETE FROM mirror_incoming;
"""  # noqa: S608 - only names of our own columns (`writing`)
_MERGE = f"""
    INSERT INTO ledger_transaction ({", ".join(COLUMNS)})
    SELECT {_NAMES}, COALESCE(created_at, %s), %s FROM mirror_incoming ORDER BY place
    {ON_CONFLICT}
"""  # noqa: S608 - the same names; every value is a parameter
_ADD = """
    INSERT INTO ledger_daytotal (day, facet_id, count, amount, fee)
    SELECT * FROM unnest(%s::date[], %s::integer[], %s::bigint[], %s::numeric[], %s::numeric[])
    ON CONFLICT (day, facet_id) DO UPDATE SET count = ledger_daytotal.count + EXCLUDED.count,
    amount = ledger_daytotal.amount + EXCLUDED.amount, fee = ledger_daytotal.fee + EXCLUDED.fee
"""


class OnPostgresql:
    """See `Writer`."""

    def note(self, rows: Sequence[Row]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_TABLES)
        lines = (
            f"{place}\t{row.line.partition(chr(9))[0]}\t\\\\x{row.digest.hex()}\n"
            for place, row in enumerate(rows)
        )
        _copy("mirror_told (place, transaction_id, digest)", lines)

    def write(self, writings: Sequence[Writing], now: datetime) -> None:
        _copy(f"mirror_incoming ({_NAMES}, place)", map(_line, writings, range(len(writings))))
        with connection.cursor() as cursor:
            cursor.execute(_MERGE, [now, now])

    def add(self, sums: Mapping[Key, Sum]) -> None:
        days, facets = zip(*sums, strict=True)
        columns = [list(column) for column in (days, facets)]
        columns += [[getattr(found, name) for found in sums.values()] for name in ("count", "amount", "fee")]
        with connection.cursor() as cursor:
            cursor.execute(_ADD, columns)


def _line(writing: Writing, place: int) -> str:
    row, changed_at = writing.row, writing.changed_at
    changed = NULL if changed_at is None else changed_at.isoformat()
    return f"{row.line}\t{writing.facet_id}\t\\\\x{row.digest.hex()}\t{changed}\t{place}\n"


def _copy(into: str, lines: Iterable[str]) -> None:
    """Send the lines in blocks: a call for each would cost more than everything else."""
    rest = iter(lines)
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        while block := "".join(islice(rest, _BLOCK)):
            copy.write(block)
