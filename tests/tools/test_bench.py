"""What `make bench` says of a measure, and a run of it on so small a scale that its figures mean nothing."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tools.bench import databases
from tools.bench.__main__ import BenchSize, measurements, run
from tools.bench.measure import Measure, Sample, alternate
from tools.bench.product import balances_per_second, pin_to_one_core
from tools.processes import temporary_sandbox

TINY = BenchSize(
    rows=2_000,
    few=2_000,
    exported=1_000,
    exported_on_sqlite=300,
    merged=300,
    deliveries=20,
    payments=3,
    waiting=30,
    file_rows=3,
    operations=2,
    listed_operations=500,
    appended=16,
    audited=30,
    partitioned=2_000,
    merged_at_once=100,
    pages=2,
    seconds=1.0,
    rounds=1,
)
MEMBERS = {
    *(
        "id",
        "what",
        "value",
        "unit",
        "limit",
        "limit_is",
        "rivals",
        "ratios",
        "target",
        "met",
        "spread",
        "rounds",
    ),
    "note",
}
RIVALS = {
    "P1.rate": {"COPY", "model iterator", "values_list", "django-import-export"},
    "P1.sqlite": {"model iterator", "values_list"},
    "P2.page": {"Django admin", "OFFSET"},
    "P3.rate": {"bare INSERT", "stock view"},
    "P4.PostgreSQL.new": {"bulk_create"},
    "P4.PostgreSQL.unchanged": {"bulk_create"},
    "P4.SQLite.new": {"bulk_create"},
    "P4.SQLite.unchanged": {"bulk_create"},
    "P5.append": {"plain INSERT", "table-lock chain"},
    "P5.verify": {"sha256 alone"},
    "P6.render": {"Jinja2"},
    "P7": {"session per call"},
    **{
        f"partitions.{name}": {"one table"}
        for name in (
            *("newest", "currency", "month", "amounts", "text", "id"),
            *("deliveries", "delivery", "merge"),
        )
    },
}
BROKEN_CHAIN = """
SELECT count(*) FROM (
    SELECT previous_balance + CASE direction WHEN 'in' THEN amount ELSE - amount - fee END AS balance,
           lead(previous_balance) OVER (PARTITION BY currency ORDER BY occurred_at, id) AS reported
    FROM ledger_transaction) links
WHERE balance <> reported
"""
WRONG_TOTALS = """
SELECT count(*) FROM ledger_daytotal total FULL JOIN (
    SELECT (occurred_at AT TIME ZONE 'UTC')::date AS day, facet_id, count(*), sum(amount) AS amount, sum(fee) AS fee
    FROM ledger_transaction GROUP BY 1, 2) counted USING (day, facet_id)
WHERE (total.count, total.amount, total.fee) IS DISTINCT FROM (counted.count, counted.amount, counted.fee)
"""
LOST_NAMES = (
    "SELECT count(*) FROM ledger_transaction LEFT JOIN ledger_names ON key = names_key WHERE key IS NULL"
)
INDEXES = "SELECT count(*) FROM pg_indexes WHERE tablename IN ('ledger_transaction', 'ledger_names')"


@pytest.mark.parametrize(
    ("value", "limit_is", "is_met"),
    [(20, "most", True), (20.1, "most", False), (20, "least", True), (19.9, "least", False)],
)
def test_a_limit_is_a_maximum_or_a_minimum(value: float, limit_is: str, is_met: bool) -> None:
    measure = Measure("M", "something", value, "s", 20, limit_is)  # type: ignore[arg-type]
    assert measure.is_met is is_met
    assert ("MISSED" in str(measure)) is not is_met


@pytest.mark.parametrize(
    ("limit_is", "rival", "ratio"), [("most", 40.0, 2.0), ("least", 10.0, 2.0), ("most", 10.0, 0.5)]
)
def test_a_ratio_compares_with_the_baseline(limit_is: str, rival: float, ratio: float) -> None:
    measure = Measure("M", "it", 20, "s", None, limit_is, {"it": rival}, {"it": 2.0})  # type: ignore[arg-type]
    assert measure.ratios == {"it": ratio}
    assert measure.is_met is (ratio >= 2)


def test_sides_alternate_and_swap_order() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return 1.0

    found = alternate(3, {name: partial(side, name) for name in ("a", "b")})
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found["a"] == Sample([1.0, 1.0, 1.0])


@pytest.mark.stack
def test_balance_reads_are_counted_at_a_single_core_provider(tmp_path: Path) -> None:
    with temporary_sandbox(tmp_path, transactions=60) as stack:
        pin_to_one_core(stack.processes["sandbox"].pid)
        assert balances_per_second(f"{stack.sandbox}/v2/balance", seconds=0.5) > 1


@pytest.fixture
def bench_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The PostgreSQL of the tests, without what is kept between runs of the bench."""
    parts = urlsplit(os.environ.get("COUNTERSIGN_TEST_DATABASE_URL", ""))
    if not parts.scheme.startswith("postgres"):
        pytest.skip("the bench measures on PostgreSQL")
    monkeypatch.setattr(databases, "SERVER", f"{parts.scheme}://{parts.netloc}")
    monkeypatch.setattr(databases, "DATABASE_PREFIX", f"countersign_bench_test_{os.getpid()}")
    monkeypatch.setattr(databases, "FOLDER", tmp_path)
    yield databases.SERVER
    databases.drop_seeded(TINY.rows)
    databases.seeded.cache_clear()


WITH_A_PRODUCT = ("product", "P9", "P10", "P11")
"""Each starts a product of its own and waits for its payments, five minutes together: `make bench` alone runs them. P12
starts one in the same way.
"""


# A socket of a reader may be collected late, between two measures; that changes nothing that is measured.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.stack
def test_a_tiny_run_measures_everything_and_its_baselines(
    bench_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(TINY, [name for name in measurements(TINY) if name not in WITH_A_PRODUCT], tmp_path / "bench.json")
    written = json.loads((tmp_path / "bench.json").read_text())
    assert all(set(measure) == MEMBERS for measure in written)
    assert {measure["id"]: set(measure["rivals"]) for measure in written if measure["rivals"]} == RIVALS
    assert all(measure["value"] >= 0 and measure["rounds"] >= 1 for measure in written)
    assert all(
        set(measure["ratios"]) == set(measure["rivals"]) >= set(measure["target"]) for measure in written
    )
    assert {"P2.depth", "P2.size", "overview.time", "overview.list", "P6.queries", "P6.critical"} <= {
        one["id"] for one in written
    }
    of_months = {one["id"]: one["note"] for one in written if one["id"].startswith("partitions.")}
    assert of_months["partitions.deliveries"] in {"1 of 36", "2 of 36"}, "so few fill no month"
    assert "no unique or exclusion constraint" in of_months["partitions.merge"]
    assert {one["id"] for one in written if one["id"].startswith("storage.")} == {
        f"storage.{name}.{part}"
        for name in ("transaction", "delivery", "operation", "audit")
        for part in ("table", "indexes")
    }
    printed = capsys.readouterr().out
    assert printed.count("Seeding") == 1, "what was seeded is used by every part"

    with psycopg.connect(f"{bench_server}/{databases.DATABASE_PREFIX}_{TINY.rows}") as session:
        for query in (BROKEN_CHAIN, WRONG_TOTALS, LOST_NAMES):
            assert session.execute(query).fetchone() == (0,), query
        assert session.execute(INDEXES).fetchone() == (12,)
