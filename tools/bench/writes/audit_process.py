"""Measure appends to the audit log, and its verification, inside Django:
`python -m tools.inside_django tools.bench.writes.audit_process <JSON>`.

Beside ours: entries of the same columns without a chain, a chain whose writers lock the whole table, and the bytes of
the same entries hashed without a check.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from backoffice.audit import log
from backoffice.audit.actions import Action
from backoffice.audit.canonical import GENESIS, digest
from backoffice.audit.models import Entry
from backoffice.audit.verification import verify_chain
from backoffice.core import clock
from tools.bench.measure import OURS, alternate

WRITERS = 8
PLAIN, LOCKED, RAW = "plain INSERT", "table-lock chain", "sha256 alone"
_BATCH = 1_000
_COLUMNS = [str(field.column) for field in Entry._meta.local_concrete_fields if not field.primary_key]
_TABLES = """
CREATE TABLE rival_plain AS SELECT * FROM audit_entry WITH NO DATA;
CREATE SEQUENCE rival_plain_position;
ALTER TABLE rival_plain ADD PRIMARY KEY (position), ALTER position SET DEFAULT nextval('rival_plain_position');
CREATE INDEX ON rival_plain (at); CREATE INDEX ON rival_plain (actor_id, position DESC);
CREATE INDEX ON rival_plain (action, position DESC);
CREATE INDEX ON rival_plain (target_type, target_id, position DESC);
CREATE TABLE rival_locked (LIKE rival_plain INCLUDING ALL);
"""
_RAW = """
SELECT position::text || at || actor_label || action || target_id || detail || previous_hash FROM audit_entry
ORDER BY position
"""


def measure(rounds: int, appended: int, verified: int) -> dict[str, dict[str, list[float]]]:
    """Entries a second of each side: appended by all writers together, each in a transaction, and read again."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
    appends = {OURS: _append_ours, PLAIN: _append_plain, LOCKED: _append_locked}
    found = alternate(
        rounds, {name: partial(_appends_per_second, one, appended) for name, one in appends.items()}
    )
    for first in range(0, verified, _BATCH):
        with transaction.atomic():
            log.record_all(_new_entry(number) for number in range(first, min(first + _BATCH, verified)))
    reads = alternate(rounds, {OURS: _verified_per_second, RAW: _hashed_per_second})
    return {
        "append": {name: sample.values for name, sample in found.items()},
        "verify": {name: sample.values for name, sample in reads.items()},
    }


def _appends_per_second(append: Callable[[int], object], count: int) -> float:
    began = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(_write, [append] * WRITERS, range(WRITERS), [count // WRITERS] * WRITERS))
    return count // WRITERS * WRITERS / (time.perf_counter() - began)


def _write(append: Callable[[int], object], first: int, count: int) -> None:
    try:
        for number in range(first, first + count):
            with transaction.atomic():
                append(number)
    finally:
        connection.close()


def _new_entry(number: int) -> log.NewEntry:
    detail = {
        "digest": hashlib.sha256(str(number).encode()).hexdigest(),
        "attempt": 1,
        "released_by": "Amara Okafor",
    }
    return log.NewEntry(Action.OPERATION_CLAIMED, None, f"WD-{number:06}", detail)


def _append_ours(number: int) -> None:
    log.record_all([_new_entry(number)])


def _append_plain(number: int) -> None:
    _insert("rival_plain", number, GENESIS)


def _append_locked(number: int) -> None:
    """As a tutorial has it: lock the table, read the newest entry, write the next one."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE rival_locked IN EXCLUSIVE MODE")
        cursor.execute("SELECT hash FROM rival_locked ORDER BY position DESC LIMIT 1")
        newest = cursor.fetchone()
    _insert("rival_locked", number, newest[0] if newest else GENESIS)


def _insert_into(table: str) -> sql.Composed:
    columns = sql.SQL(", ").join(map(sql.Identifier, _COLUMNS))
    marks = sql.SQL(", ").join([sql.Placeholder()] * len(_COLUMNS))
    return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), columns, marks)


def _insert(table: str, number: int, previous_hash: str) -> None:
    new = _new_entry(number)
    entry = Entry(
        position=0,
        at=clock.now(),
        actor_label=log.SYSTEM,
        action=new.action.value,
        target_label=str(new.target),
        detail=new.detail,
        previous_hash=previous_hash,
    )
    entry.hash = digest(entry.members())
    values: dict[str, Any] = {name: getattr(entry, name) for name in _COLUMNS} | {
        "detail": json.dumps(entry.detail)
    }
    with connection.cursor() as cursor:
        cursor.execute(_insert_into(table), list(values.values()))


def _verified_per_second() -> float:
    began = time.perf_counter()
    verdict = verify_chain()
    if not verdict.is_intact:
        raise ValueError(str(verdict))
    return verdict.verified / (time.perf_counter() - began)


def _hashed_per_second() -> float:
    """The same entries read as text and hashed one after the other, without any check."""
    began, hashed, previous = time.perf_counter(), 0, b""
    with transaction.atomic(), connection.connection.cursor(name="raw") as cursor:
        cursor.execute(_RAW)
        for [text] in cursor:
            previous = hashlib.sha256(previous + text.encode()).digest()
            hashed += 1
    return hashed / (time.perf_counter() - began)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
    sys.exit(0)
