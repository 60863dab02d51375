"""Measures everything, prints the table and writes bench.json. `--only P2` measures the rows of that name alone."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stack.bench import export, pages, product, reads, renders, upserts
from stack.bench.databases import BenchError, Database, on_sqlite, prepare, scratch, seconds_to_seed, seeded
from stack.bench.measure import Measure, write
from stack.processes import ROOT


@dataclass(frozen=True)
class Size:
    """How much is measured. The defaults are what docs/benchmarks.md reports."""

    rows: int = 10_000_000
    few: int = 10_000
    exported: int = 1_000_000
    exported_on_sqlite: int = 100_000
    merged: int = 100_000
    rounds: int = 7


PARTS_OF_ROWS = ("few", "exported", "exported_on_sqlite", "merged")


def parts(size: Size) -> dict[str, Callable[[], Iterator[Measure]]]:
    """What is measured, by the beginning of its rows' names."""
    return {
        "seed": lambda: _seed(size),
        "P1": lambda: _export(size),
        "P2": lambda: pages.measures(seeded(size.rows), seeded(size.few), size.rounds, size.rows, size.few),
        "P4": lambda: _upsert(size),
        "P6": lambda: renders.measures(seeded(size.rows), size.rounds),
        "P7": lambda: reads.measures(size.rounds),
        "product": product.measures,
    }


def run(size: Size, only: list[str], into: Path) -> list[Measure]:
    """Measure these parts, or all; tell each measure as it comes, and keep those, also where a later one fails."""
    prepare()
    measures: list[Measure] = []
    try:
        for name, part in parts(size).items():
            if only and name not in only:
                continue
            for measure in part():
                print(measure, flush=True)
                measures.append(measure)
    finally:
        write(measures, into)
    return measures


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 whatever was measured, since nothing fails on time."""
    usual = Size()
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], choices=list(parts(usual)), help="these rows alone")
    parser.add_argument("--rows", type=int, default=usual.rows, help="transactions in the large mirror")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="how often each side is measured")
    chosen = parser.parse_args(arguments)
    parts_of = {one: min(vars(usual)[one], chosen.rows) for one in PARTS_OF_ROWS}
    size = Size(rows=chosen.rows, rounds=chosen.rounds, **parts_of)
    try:
        run(size, chosen.only, ROOT / "bench.json")
    except BenchError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


def _seed(size: Size) -> Iterator[Measure]:
    seeded(size.rows)
    yield Measure("seed", f"seeding {size.rows:,} transactions, once", seconds_to_seed(size.rows), "s", 300)


def _export(size: Size) -> Iterator[Measure]:
    yield from export.measures(seeded(size.rows), size.rounds, size.exported)
    with tempfile.TemporaryDirectory() as folder, on_sqlite(Path(folder)) as database:
        database.inside("fill", rows=size.exported_on_sqlite)
        yield from export.measures_on_sqlite(database, size.rounds, size.exported_on_sqlite)


def _upsert(size: Size) -> Iterator[Measure]:
    def of(database: Database, engine: str) -> Iterator[Measure]:
        return upserts.measures(database, engine, size.rounds, size.merged)

    with scratch("mirror") as database:
        yield from of(database, "PostgreSQL")
    with tempfile.TemporaryDirectory() as folder, on_sqlite(Path(folder)) as database:
        yield from of(database, "SQLite")


if __name__ == "__main__":
    sys.exit(main())
