"""The databases of the benchmark: migrated, filled with generated transactions, kept between runs where that
is slow.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tools.bench.seeding import seed
from tools.processes import ROOT

SERVER = os.environ.get("BENCH_SERVER", "postgres://postgres@127.0.0.1:5432")
DATABASE_PREFIX = "countersign_bench"
FOLDER = ROOT / "var" / "bench"


class BenchError(Exception):
    """A measurement failed; the message says why."""


@dataclass(frozen=True)
class BenchDatabase:
    """One database with the product's tables, and the means to run the product on it."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a product process on this database, with the alternatives installed."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
        return {
            **inherited,
            "DJANGO_SETTINGS_MODULE": "tools.bench.rivals.settings",
            "PYTHONPATH": str(ROOT),
            "COUNTERSIGN_DATA_DIR": str(FOLDER),
            "COUNTERSIGN_DATABASE_URL": self.url,
            "COUNTERSIGN_LOG_LEVEL": "WARNING",
        }

    def inside(self, what: str, **given: Any) -> Any:
        """The result of this function of `django_process`. Raises BenchError."""
        return json.loads(
            self.run("-m", "tools.bench.django_process", what, json.dumps(given)).splitlines()[-1]
        )

    def migrate(self) -> None:
        self.run("manage.py", "migrate", "--verbosity", "0", "--settings", "backoffice.settings")

    def run(self, *arguments: str) -> str:
        """Run Python and return its output. Raises BenchError."""
        done = subprocess.run(  # noqa: S603 - our own interpreter and arguments
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(
                f"{' '.join(arguments)[:200]} failed:\n{done.stdout[-500:]}{done.stderr[-2000:]}"
            )
        return done.stdout


def prepare() -> None:
    """Prepare what every web process needs."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    BenchDatabase(f"sqlite:///{FOLDER / 'nothing.sqlite3'}").run(
        "manage.py", "collectstatic", "--noinput", "--verbosity", "0"
    )


def seeded(rows: int) -> BenchDatabase:
    """A PostgreSQL database with this many transactions, reused from an earlier run if its migrations are the
    same.
    """
    name = f"{DATABASE_PREFIX}_{rows}"
    found = BenchDatabase(f"{SERVER}/{name}")
    if not _is_kept(name, rows):
        began = time.monotonic()
        print(f"Seeding {rows:,} transactions …", flush=True)
        _recreate(name)
        found.migrate()
        for step in seed(found.url, rows):
            if rows > 100_000:
                print(f"  {time.monotonic() - began:4.0f} s: {step}", flush=True)
        _write_marker(name, rows, time.monotonic() - began)
    found.migrate()
    found.inside("refresh")
    return found


def drop_seeded(rows: int) -> None:
    """Drop the stored database with this many transactions."""
    _drop(f"{DATABASE_PREFIX}_{rows}")


def seconds_to_seed(rows: int) -> float:
    """How long its creation took."""
    with psycopg.connect(f"{SERVER}/{DATABASE_PREFIX}_{rows}") as session:
        [seconds] = session.execute("SELECT seconds FROM bench_marker").fetchone() or (0.0,)
        return float(seconds)


@contextmanager
def temporary_database(name: str) -> Iterator[BenchDatabase]:
    """A PostgreSQL database that is dropped after the block."""
    name = f"{DATABASE_PREFIX}_{name}_{os.getpid()}"
    _recreate(name)
    try:
        made = BenchDatabase(f"{SERVER}/{name}")
        made.migrate()
        yield made
    finally:
        _drop(name)


@contextmanager
def sqlite_database(folder: Path) -> Iterator[BenchDatabase]:
    """An empty SQLite database in this folder."""
    made = BenchDatabase(f"sqlite:///{folder / 'bench.sqlite3'}")
    made.migrate()
    yield made


def _is_kept(name: str, rows: int) -> bool:
    try:
        with psycopg.connect(f"{SERVER}/{name}") as session:
            kept = session.execute("SELECT schema, rows FROM bench_marker").fetchone()
    except psycopg.Error:
        return False
    return kept == (_schema(), rows)


def _write_marker(name: str, rows: int, seconds: float) -> None:
    with psycopg.connect(f"{SERVER}/{name}") as session:
        session.execute("CREATE TABLE bench_marker (schema text, rows bigint, seconds float8)")
        session.execute("INSERT INTO bench_marker VALUES (%s, %s, %s)", [_schema(), rows, seconds])


def _schema() -> str:
    """The migrations of the seeded apps; the others are applied to a stored database."""
    return " ".join(sorted(path.stem for path in ROOT.glob("backoffice/ledger/migrations/0*.py")))


def _recreate(name: str) -> None:
    _drop(name)
    with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as session:
        session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _drop(name: str) -> None:
    with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as session:
        session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
