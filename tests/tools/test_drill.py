"""`make drill`, with three moments of SQLite, released with the same one-time code, and one of a promoted standby."""

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


@pytest.mark.parametrize(
    ("backup", "moments"),
    [
        (drill.COPY, ["approve", "release", "leaving"]),
        pytest.param(drill.STANDBY, ["release"], marks=needs_server_programs),
    ],
)
def test_a_restored_payment_is_not_sent_twice(backup: str, moments: list[str]) -> None:
    chosen = [part for moment in moments for part in ("--moment", moment)]
    done = run_python("-m", "tools.inside_django", "tools.drill", "--backup", backup, *chosen, own={})
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["sent_twice"]) == (0, 0), done.stdout
    assert summary["paused"] == summary["closed_by_matching"] == len(moments)
    assert summary["released_dropped"] == 1


@pytest.mark.parametrize(
    ("difference", "passes"),
    [
        ({}, True),
        ({"sent": 2}, False),
        ({"sent": 0}, False),
        ({"paused": False}, False),
        ({"released_dropped": False}, False),
        ({"status": "approved"}, False),
        ({"moment": "leaving", "released_dropped": False}, True),
        ({"moment": "leaving", "paused": False, "released_dropped": False}, False),
    ],
)
def test_what_the_drill_accepts(difference: dict[str, object], passes: bool) -> None:
    assert drill.is_passed([CELL | difference]) is passes
    assert not drill.is_passed([])


@pytest.mark.parametrize(
    ("options", "status"), [([], 1), (["--allow-skipped"], 0), (["--backup", drill.COPY], 0)]
)
def test_it_fails_if_this_machine_cannot_run_a_way_unless_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], status: int
) -> None:
    monkeypatch.setattr(drill, "server_programs", list)
    monkeypatch.setattr(drill, "_run_backup", lambda *_: [CELL])
    monkeypatch.setattr("sys.argv", ["drill", *options])
    assert drill.main() == status
    summary = json.loads(capsys.readouterr().out)
    skipped = [] if "--backup" in options else [drill.BASE_BACKUP, drill.STANDBY]
    assert (summary["skipped"], "problem" in summary) == (skipped, bool(skipped))
