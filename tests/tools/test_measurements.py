"""The tables of the documentation that are made from the stored results of the bench."""

import json
from pathlib import Path

import pytest

from tools import measurements
from tools.bench.measure import Measure, as_rows
from tools.docs import main


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stored results, which the tables are made from."""
    path = tmp_path / "results.json"
    path.write_text(measurements.RESULTS.read_text())
    monkeypatch.setattr(measurements, "RESULTS", path)
    return path


def test_a_kept_result_replaces_the_one_of_its_name_in_its_place(stored: Path) -> None:
    before = [row["id"] for row in measurements.kept()]
    measured = as_rows(
        [Measure("P7", "reads", 50.0, "ms", rivals={"session": 200.0}), Measure("new", "it", 1, "s")]
    )
    measurements.keep(measured, "2026-12-01")
    rows = {row["id"]: row for row in measurements.kept()}
    assert [*rows] == [*before, "new"]
    assert (rows["P7"]["value"], rows["P7"]["ratios"], rows["P7"]["day"]) == (
        50.0,
        {"session": 4.0},
        "2026-12-01",
    )


def test_a_missed_line_says_so_and_shows_what_was_wanted(stored: Path) -> None:
    measured = Measure("P7", "reads", 50.0, "ms", 40, rivals={"session": 100.0}, target={"session": 3})
    stored.write_text(json.dumps([{**row, "day": "2026-12-01"} for row in as_rows([measured])]))
    assert (
        "| P7 **missed** | reads | 50.0 ms | at most 40.0 | session 2.00, wanted 3 | 2026-12-01 |"
        in measurements.benchmarks_table()
    )


def test_a_page_that_differs_from_the_stored_results_fails_the_check(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"]) == 0
    measurements.keep(as_rows([Measure("P7", "reads", 1.0, "ms")]), "2026-12-01")
    assert main(["--check"]) == 1
    assert "benchmarks.md: a generated table is stale" in capsys.readouterr().err
