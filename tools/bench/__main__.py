"""Run every measurement, print the table and write bench.json. `--only P2` runs those of that name alone."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from tools.bench import client_reads, pages, payday, people, product, waiting
from tools.bench.databases import (
    BenchDatabase,
    drop_template,
    prepare,
    seconds_to_seed,
    seeded,
    sqlite_database,
    temporary_database,
)
from tools.bench.measure import OURS, Measure, Sample, as_rows, compared, write
from tools.bench.payouts.measures import payout_measures
from tools.bench.tables import partitions, storage
from tools.bench.writes import deliveries
from tools.measurements import keep
from tools.processes import ROOT, StackError

_RIVAL_FRACTION = {"PostgreSQL": 5, "SQLite": 1}
"""How many times fewer records the alternative gets: on PostgreSQL, where its rate hardly falls with their number, as
many would take minutes.
"""
_ENTRIES_APPENDED = {"plain INSERT": 0.9, "table-lock chain": 3}
_ENTRIES_VERIFIED = {"sha256 alone": 0.5}


def merge_measures(database: BenchDatabase, engine: str, rounds: int, records: int) -> Iterator[Measure]:
    """Records per second, merged for the first time and merged again unchanged."""
    found = database.inside(
        "merge", rounds=rounds, records_of_ours=records, records_of_rival=records // _RIVAL_FRACTION[engine]
    )
    of_new = 3 if engine == "PostgreSQL" else 2
    for what, key, target in (("new", "new", of_new), ("unchanged", "again", 5)):
        sides = {OURS: Sample(found[f"ours_{key}"]), "bulk_create": Sample(found[f"rival_{key}"])}
        yield compared(
            f"P4.{engine}.{what}",
            f"merge of {records:,} {what} records, on {engine}",
            sides,
            "rec/s",
            {"bulk_create": target},
            limit_is="least",
        )


def audit_measures(rounds: int, appended: int, verified: int) -> Iterator[Measure]:
    """Entries per second, appended to the audit log by several writers at once, and verified, on PostgreSQL.

    Of so many appended in each round by eight writers, and a log of so many verified.
    """
    given = json.dumps({"rounds": rounds, "appended": appended, "verified": verified})
    with temporary_database("audit") as database:
        output = database.stack().python(
            "-m", "tools.inside_django", "tools.bench.writes.audit_process", given
        )
    found = json.loads(output.splitlines()[-1])
    for name, what, target in (
        ("append", "entries appended to the audit log by 8 writers, a commit each", _ENTRIES_APPENDED),
        ("verify", f"entries of the audit log verified, of {verified:,}", _ENTRIES_VERIFIED),
    ):
        sides = {side: Sample(values) for side, values in found[name].items()}
        yield compared(f"P5.{name}", what, sides, "/s", target, limit_is="least")


@dataclass(frozen=True)
class BenchSize:
    """How much is measured. The defaults are those of docs/benchmarks.md."""

    rows: int = 10_000_000
    few: int = 10_000
    exported: int = 1_000_000
    exported_on_sqlite: int = 100_000
    merged: int = 100_000
    deliveries: int = 1_000
    payments: int = 500
    waiting: int = 10_000
    file_rows: int = 5_000
    operations: int = 300
    listed_operations: int = 100_000
    appended: int = 2_000
    audited: int = 1_000_000
    partitioned: int = 1_000_000
    merged_at_once: int = 10_000
    seconds: float = 10.0
    pages: int = 50
    rounds: int = 7


PARTS_OF_ROWS = (
    "few",
    "exported",
    "exported_on_sqlite",
    "merged",
    "audited",
    "partitioned",
    "merged_at_once",
)


def measurements(size: BenchSize) -> dict[str, Callable[[], Iterator[Measure]]]:
    """The measurements by the prefix of their rows' names."""
    return {
        "seed": lambda: _seed(size),
        "P1": lambda: _export(size),
        "P2": lambda: pages.page_measures(
            seeded(size.rows), seeded(size.few), size.rounds, size.rows, size.few
        ),
        "overview": lambda: pages.overview_measures(seeded(size.rows), size.rounds, size.listed_operations),
        "P3": lambda: deliveries.delivery_measures(size.rounds, size.deliveries),
        "P4": lambda: _merge(size),
        "P5": lambda: audit_measures(size.rounds, size.appended, size.audited),
        "P6": lambda: pages.rendering_measures(seeded(size.rows), size.rounds),
        "P7": lambda: client_reads.client_read_measures(size.rounds),
        "product": product.product_measures,
        "P9": lambda: payday.payday_measures(size.payments),
        "P10": lambda: chain(people.people_measures(size.seconds), waiting.waiting_measures(size.waiting)),
        "P11": lambda: payout_measures(size.file_rows),
        "P12": lambda: people.slow_connection_measures(size.pages),
        "storage": lambda: storage.storage_measures(size.merged, size.deliveries, size.operations),
        "partitions": lambda: partitions.partition_measures(
            size.partitioned, size.rounds, size.merged_at_once
        ),
    }


def run(size: BenchSize, only: list[str], into: Path) -> list[Measure]:
    """Run these measurements, or all; print each result at once and store it, even if a later one fails."""
    prepare()
    measures: list[Measure] = []
    try:
        for name, part in measurements(size).items():
            if only and name not in only:
                continue
            for measure in part():
                print(measure, flush=True)
                measures.append(measure)
    finally:
        drop_template()
        write(measures, into)
    return measures


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns 0 whatever was measured, since no time limit is enforced."""
    defaults = BenchSize()
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], choices=list(measurements(defaults)), help="these rows alone"
    )
    parser.add_argument("--rows", type=int, default=defaults.rows, help="transactions in the large mirror")
    parser.add_argument("--rounds", type=int, default=defaults.rounds, help="how often each side is measured")
    parser.add_argument(
        "--keep", action="store_true", help="keep the results for the tables of the documentation"
    )
    options = parser.parse_args(arguments)
    parts = {name: min(vars(defaults)[name], options.rows) for name in PARTS_OF_ROWS}
    size = BenchSize(rows=options.rows, rounds=options.rounds, **parts)
    try:
        measures = run(size, options.only, ROOT / "bench.json")
    except StackError as exc:
        print(exc, file=sys.stderr)
        return 1
    if options.keep:
        keep(as_rows(measures), datetime.now(UTC).date().isoformat())
    return 0


def _seed(size: BenchSize) -> Iterator[Measure]:
    seeded(size.rows)
    yield Measure("seed", f"seeding {size.rows:,} transactions, once", seconds_to_seed(size.rows), "s", 300)


def _export(size: BenchSize) -> Iterator[Measure]:
    yield from pages.export_measures(seeded(size.rows), size.rounds, size.exported)
    with tempfile.TemporaryDirectory() as folder, sqlite_database(Path(folder)) as database:
        database.inside("fill", rows=size.exported_on_sqlite)
        yield from pages.sqlite_export_measures(database, size.rounds, size.exported_on_sqlite)


def _merge(size: BenchSize) -> Iterator[Measure]:
    def measures_of(database: BenchDatabase, engine: str) -> Iterator[Measure]:
        return merge_measures(database, engine, size.rounds, size.merged)

    with temporary_database("mirror") as database:
        yield from measures_of(database, "PostgreSQL")
    with tempfile.TemporaryDirectory() as folder, sqlite_database(Path(folder)) as database:
        yield from measures_of(database, "SQLite")


if __name__ == "__main__":
    sys.exit(main())
