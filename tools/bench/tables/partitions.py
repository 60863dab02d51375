"""Partitions by month: the product's own list queries and a merge, on partitioned copies of two tables and on the
tables themselves. PostgreSQL only.

The copies have the names of the tables, in a schema that comes first in the search path: the product reads them
unchanged.
"""

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from tools.bench.databases import BenchDatabase, seeded, temporary_database
from tools.bench.measure import OURS, Measure, Sample, alternate, compared

ONE_TABLE = "one table"
SCHEMA = "months"
_TIME_COLUMNS = {"ledger_transaction": "occurred_at", "webhooks_delivery": "received_at"}
_TRANSACTION_LISTS = {
    "newest": ("newest 50", ""),
    "currency": ("one currency", "currency=USD"),
    "month": ("one month and currency", "currency=NGN&since=2026-02-01&until=2026-02-28"),
    "amounts": ("amounts, largest first", "min_amount=1000&max_amount=2000&sort=largest"),
    "text": ("part of a name", "text=Chidinma Obi"),
    "id": ("one transaction by its id", "transaction_id=c4ca4238-a0b9-2382-0dcc-509a6f75849b"),
}
_DELIVERY_LISTS = {
    "deliveries": ("newest 50 deliveries", ""),
    "delivery": ("deliveries of one transaction", "subject=c4ca4238-a0b9-2382-0dcc-509a6f75849b"),
}
_DELIVERIES = """
INSERT INTO webhooks_delivery
    (identity, digest, received_at, last_at, received_count, verdict, error, key, event, transaction_id, reference,
     body, valid_at, event_at, source)
SELECT sha, sha, at, at, 1, 'valid', '', 'key', 'Transaction updated', md5(number::text)::uuid::text, '',
       convert_to(repeat(sha, 8), 'UTF8'), at, at, '127.0.0.1'
FROM generate_series(1, %(rows)s) number,
     LATERAL (SELECT encode(sha256(int8send(number)), 'hex') AS sha,
                     %(newest)s::timestamptz - (%(rows)s - number) * (interval '3 years' / %(rows)s) AS at) generated
"""
_IDS = """
CREATE TABLE months.transaction_month AS SELECT transaction_id, occurred_at FROM months.ledger_transaction;
ALTER TABLE months.transaction_month ADD PRIMARY KEY (transaction_id)
"""
_INCOMING = """
CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS
SELECT {columns} FROM public.ledger_transaction ORDER BY occurred_at DESC LIMIT {records}
"""
_HALF_NEW = (
    "UPDATE incoming SET transaction_id = 'new-' || transaction_id WHERE left(transaction_id, 1) < '8'"
)
_MERGE_INTO_ONE_TABLE = """
INSERT INTO public.ledger_transaction ({columns}) SELECT {columns} FROM incoming
ON CONFLICT (transaction_id) DO UPDATE SET status = EXCLUDED.status, digest = EXCLUDED.digest
"""
_MERGE_INTO_MONTHS = (
    "INSERT INTO months.transaction_month SELECT transaction_id, occurred_at FROM incoming ON CONFLICT DO NOTHING",
    """UPDATE incoming SET occurred_at = known.occurred_at FROM months.transaction_month known
    WHERE known.transaction_id = incoming.transaction_id AND known.occurred_at <> incoming.occurred_at""",
    """INSERT INTO months.ledger_transaction ({columns}) SELECT {columns} FROM incoming
    ON CONFLICT (transaction_id, occurred_at) DO UPDATE SET status = EXCLUDED.status, digest = EXCLUDED.digest""",
)


def partition_measures(rows: int, rounds: int, merged: int) -> Iterator[Measure]:
    """Every list and a merge, on partitions beside one table, with as many transactions as deliveries."""
    with temporary_database("partitions", template=seeded(rows)) as database:
        months = _prepare(database, rows)
        yield from _list_measures(database, rounds, months)
        yield _merge_measure(database, rounds, merged)


def _prepare(database: BenchDatabase, rows: int) -> int:
    """Make the partitioned copies; returns the number of their partitions."""
    with psycopg.connect(database.url, autocommit=True) as session:
        session.execute("ALTER TABLE ledger_transaction DISABLE TRIGGER USER")  # a copy has none
        [newest] = session.execute("SELECT max(occurred_at) FROM ledger_transaction").fetchone() or (None,)
        session.execute(_DELIVERIES, {"rows": rows, "newest": newest})
        session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
        months = [_partition(session, table, column) for table, column in _TIME_COLUMNS.items()]
        session.execute(_IDS)
        session.execute("VACUUM (ANALYZE)")
    return months[0]


def _partition(session: psycopg.Connection[Any], table: str, column: str) -> int:
    """Copy this table into partitions by month of this column; returns their number."""
    named = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
    created = "CREATE TABLE months.{table} (LIKE public.{table} INCLUDING DEFAULTS INCLUDING GENERATED) "
    session.execute(sql.SQL(created + "PARTITION BY RANGE ({column})").format(**named))
    with_number = "ALTER TABLE months.{table} ALTER id SET DEFAULT nextval({sequence})"
    sequence = sql.Literal(f"public.{table}_id_seq")
    session.execute(sql.SQL(with_number).format(sequence=sequence, **named))
    bounds = "SELECT generate_series(date_trunc('month', min({column})), max({column}), '1 month') FROM public.{table}"
    months = [month for [month] in session.execute(sql.SQL(bounds).format(**named)).fetchall()]
    for month in months:
        name = sql.Identifier(SCHEMA, f"{table}_{month:%Y_%m}")
        part = sql.SQL("CREATE TABLE {} PARTITION OF months.{table} FOR VALUES FROM ({}) TO ({})")
        until = (month + timedelta(days=31)).replace(day=1)
        session.execute(part.format(name, sql.Literal(month), sql.Literal(until), **named))
    columns = _columns(session, table, ("names_key",))
    copied = sql.SQL("INSERT INTO months.{table} ({}) SELECT {} FROM public.{table} ORDER BY {column}")
    session.execute(copied.format(columns, columns, **named))
    for definition in _index_definitions(session, table, column):
        session.execute(definition)
    return len(months)


def _columns(session: psycopg.Connection[Any], table: str, without: tuple[str, ...]) -> sql.Composed:
    query = """SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
    ORDER BY attnum"""
    names = [name for [name] in session.execute(query, [f"public.{table}"]) if name not in without]
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _index_definitions(session: psycopg.Connection[Any], table: str, column: str) -> list[bytes]:
    """The indexes of the table, for its copy: a unique one has the month's column in addition."""
    found = session.execute(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = %s", [table]
    )
    definitions = [re.sub(r" INDEX \w+ ON public\.", f" INDEX ON {SCHEMA}.", row[0]) for row in found]
    return [
        (re.sub(r"\((\w+)\)$", rf"(\1, {column})", one) if " UNIQUE " in one else one).encode()
        for one in definitions
    ]


def _list_measures(database: BenchDatabase, rounds: int, months: int) -> Iterator[Measure]:
    partitioned = BenchDatabase(f"{database.url}?options=-csearch_path%3D{SCHEMA}%2Cpublic")
    lists = {
        "transactions": {name: query for name, (_, query) in _TRANSACTION_LISTS.items()},
        "deliveries": {name: query for name, (_, query) in _DELIVERY_LISTS.items()},
    }
    ours = partitioned.inside("read_lists", rounds=rounds, **lists)
    others = database.inside("read_lists", rounds=rounds, **lists)
    for name, (what, _) in (_TRANSACTION_LISTS | _DELIVERY_LISTS).items():
        sides = {OURS: Sample(ours[name]["ms"]), ONE_TABLE: Sample(others[name]["ms"])}
        read = f"{ours[name]['partitions']} of {months}"
        yield compared(f"partitions.{name}", what, sides, "ms", {}, note=read)


def _merge_measure(database: BenchDatabase, rounds: int, records: int) -> Measure:
    """Of records of which about half are known; nothing is committed."""
    with psycopg.connect(database.url) as session:
        columns = _columns(session, "ledger_transaction", ("id", "names_key"))
        months = [sql.SQL(one).format(columns=columns) for one in _MERGE_INTO_MONTHS]
        one_table = [sql.SQL(_MERGE_INTO_ONE_TABLE).format(columns=columns)]
        steps = {OURS: months, ONE_TABLE: one_table}
        found = alternate(
            rounds, {side: partial(_merge, session, columns, records, done) for side, done in steps.items()}
        )
        refused = _refusal(session, columns)
    what = f"merge of {records:,} records, half of them known, through a table of ids"
    return compared(
        "partitions.merge", what, found, "ms", {}, note=f"the merge of today is refused: {refused}"
    )


def _merge(
    session: psycopg.Connection[Any], columns: sql.Composed, records: int, steps: list[sql.Composed]
) -> float:
    with session.transaction(force_rollback=True):
        session.execute(sql.SQL(_INCOMING).format(columns=columns, records=records))
        session.execute(_HALF_NEW)
        began = time.perf_counter()
        for step in steps:
            session.execute(step)
        return (time.perf_counter() - began) * 1000


def _refusal(session: psycopg.Connection[Any], columns: sql.Composed) -> str:
    """What PostgreSQL says of the product's own merge on partitions."""
    merge = sql.SQL(
        _MERGE_INTO_ONE_TABLE.replace("public.", f"{SCHEMA}.").replace(
            "incoming", "public.ledger_transaction"
        )
    )
    try:
        with session.transaction(force_rollback=True):
            session.execute(merge.format(columns=columns))
    except psycopg.errors.InvalidColumnReference as exc:
        return str(exc).splitlines()[0]
    return "accepted"
