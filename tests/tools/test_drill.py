"""`make drill`, with one moment of SQLite and of a promoted standby."""

import json
import os

import pytest

from tools import drill
from tools.processes import run_python

CELL = {"backup": drill.COPY, "moment": "release", "sent": 1, "paused": True, "released_dropped": True}
CELL |= {"closed_by_matching": True, "status": "succeeded"}
needs_server_programs = pytest.mark.skipif(
    not drill.server_programs() and os.environ.get("COUNTERSIGN_DEMAND_ALL") != "1",
    reason="this machine lacks initdb, pg_ctl or pg_basebackup",
)


@pytest.mark.parametrize("backup", [drill.COPY, pytest.param(drill.STANDBY, marks=needs_server_programs)])
def test_a_restored_payment_is_not_sent_twice(backup: str) -> None:
    done = run_python("-m", "tools.drill", "--backup", backup, "--moment", "release", own={})
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["sent_twice"], summary["paused"]) == (0, 0, 1), done.stdout
    assert (summary["released_dropped"], summary["closed_by_matching"]) == (1, 1)


@pytest.mark.parametrize(
    ("difference", "passes"),
    [
        ({}, True),
        ({"sent": 2}, False),
        ({"sent": 0}, False),
        ({"paused": False}, False),
        ({"released_dropped": False}, False),
        ({"status": "approved"}, False),
        ({"moment": "leaving", "paused": False, "released_dropped": False}, True),
        ({"moment": "answer", "paused": False, "released_dropped": False}, True),
        ({"moment": "answer", "paused": False, "backup": drill.BASE_BACKUP}, False),
        ({"moment": "answer", "paused": False, "backup": drill.STANDBY}, False),
    ],
)
def test_what_the_drill_accepts(difference: dict[str, object], passes: bool) -> None:
    assert drill.is_passed([CELL | difference]) is passes
    assert not drill.is_passed([])


@pytest.mark.parametrize(("demand_all", "status"), [("", 0), ("1", 1)])
def test_cells_that_this_machine_cannot_run_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], demand_all: str, status: int
) -> None:
    monkeypatch.setattr(drill, "server_programs", list)
    monkeypatch.setattr(drill, "_run_backup", lambda *_: [CELL])
    monkeypatch.setenv("COUNTERSIGN_DEMAND_ALL", demand_all)
    monkeypatch.setattr("sys.argv", ["drill"])
    assert drill.main() == status
    assert json.loads(capsys.readouterr().out)["skipped"] == [drill.BASE_BACKUP, drill.STANDBY]
