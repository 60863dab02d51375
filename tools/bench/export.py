"""P1: a CSV of a million transactions over HTTP."""

import subprocess
import time
from collections.abc import Callable, Iterator

from tools.bench.databases import BenchDatabase
from tools.bench.measure import Measure, Sample, in_turns, medians_of
from tools.bench.web_process import WebProcess, web_process

SMALL_EXPORT = 10_000
RIVALS = {
    "model iterator": ("model.csv", 4),
    "values_list": ("values.csv", 4),
    "django-import-export": ("import-export.csv", 40),
}
"""URL, and how many times fewer rows each writes: the rate is constant, and a million would take minutes."""
MAX_EXTRA_GROWTH = 4.0  # MiB


def export_measures(database: BenchDatabase, rounds: int, rows: int) -> Iterator[Measure]:
    """Ours on PostgreSQL beside COPY and common alternatives."""
    wanted, few = database.inside("newest", rows=rows), database.inside("newest", rows=SMALL_EXPORT)
    statement = database.inside("copy_statement", since=wanted["since"])["statement"]
    with web_process(database) as web:
        _warm_up(web, few["since"])
        first_bytes: list[float] = []

        def ours() -> float:
            came = web.download(_export_path(wanted["since"]))
            first_bytes.append(came.first_byte * 1000)
            return float(wanted["rows"] / came.whole)

        sides = {"ours": ours, "COPY": lambda: wanted["rows"] / _copy(database, statement)}
        sides |= {name: _rival(web, path, rows // less) for name, (path, less) in RIVALS.items()}
        for side in (ours, sides["COPY"]):
            side()  # load the rows into memory, for both sides
        found = in_turns(rounds, sides)
    growths = in_turns(
        rounds,
        {
            "big": lambda: _growth(database, few["since"], wanted["since"]),
            "small": lambda: _growth(database, few["since"], few["since"]),
        },
    )
    big, small = growths["big"], growths["small"]
    yield Measure(
        id="P1.rate",
        what=f"CSV of {wanted['rows']:,} transactions over HTTP, formula-safe",
        value=found["ours"].median,
        unit="rows/s",
        limit_is="least",
        rivals=medians_of(found, "COPY", *RIVALS),
        target={"COPY": 0.8, "model iterator": 8, "django-import-export": 30},
        spread=found["ours"].spread,
        rounds=rounds,
        note="COPY is psql with the same SELECT; the others write fewer rows, and their rate is told",
    )
    first = Sample(first_bytes)
    yield Measure(
        "P1.first-byte", "its first byte", first.median, "ms", 100, spread=first.spread, rounds=rounds
    )
    yield Measure(
        "P1.memory",
        "growth of the web process meanwhile",
        big.median,
        "MiB",
        32,
        spread=big.spread,
        rounds=rounds,
    )
    yield Measure(
        "P1.memory-even",
        f"more of it than for {few['rows']:,} rows ({small.median:.1f} MiB)",
        max(0.0, big.median - small.median),
        "MiB",
        MAX_EXTRA_GROWTH,
        rounds=rounds,
    )


def sqlite_export_measures(database: BenchDatabase, rounds: int, rows: int) -> Iterator[Measure]:
    """Ours on SQLite beside common alternatives."""
    found_rows = database.inside("newest", rows=rows)
    with web_process(database) as web:
        _warm_up(web, found_rows["since"])
        sides = {"ours": lambda: found_rows["rows"] / web.download(_export_path(found_rows["since"])).whole}
        sides |= {name: _rival(web, RIVALS[name][0], rows) for name in ("model iterator", "values_list")}
        found = in_turns(rounds, sides)
    yield Measure(
        id="P1.sqlite",
        what=f"CSV of {found_rows['rows']:,} transactions over HTTP, on SQLite",
        value=found["ours"].median,
        unit="rows/s",
        limit_is="least",
        rivals=medians_of(found, "model iterator", "values_list"),
        target={"model iterator": 2.5},
        spread=found["ours"].spread,
        rounds=rounds,
    )


def _export_path(since: str) -> str:
    return f"/reports/transactions.csv?since={since}"


def _warm_up(web: WebProcess, since: str) -> None:
    for path in (_export_path(since), *(f"/rivals/{path}?rows=100" for path, _ in RIVALS.values())):
        web.download(path)


def _rival(web: WebProcess, path: str, rows: int) -> Callable[[], float]:
    return lambda: rows / web.download(f"/rivals/{path}?rows={rows}").whole


def _growth(database: BenchDatabase, few: str, since: str) -> float:
    """MiB that this file adds to a new process that has already written a small one, since freed memory would
    hide it.
    """
    with web_process(database) as web:
        web.download(_export_path(few))
        with web.growth() as growth:
            web.download(_export_path(since))
    return growth[0]


def _copy(database: BenchDatabase, statement: str) -> float:
    began = time.perf_counter()
    subprocess.run(  # noqa: S603 - our own statement
        ["psql", database.url, "--quiet", "--no-psqlrc", "--command", statement],  # noqa: S607 - wherever it is
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began
