"""`make drill`, with one moment on SQLite."""

import json

import pytest

from tools import drill
from tools.processes import run_python

CELL = {"moment": "release", "sent": 1, "paused": True}


def test_a_restored_payment_is_not_sent_twice() -> None:
    done = run_python("-m", "tools.drill", "--engine", "sqlite", "--moment", "release", own={})
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["sent_twice"], summary["paused"]) == (0, 0, 1), done.stdout
    assert (summary["released_dropped"], summary["closed_by_matching"]) == (1, 1)


@pytest.mark.parametrize(
    ("difference", "passes"),
    [
        ({}, True),
        ({"sent": 2}, False),
        ({"paused": False}, False),
        ({"moment": "answer", "paused": False}, True),
    ],
)
def test_what_the_drill_accepts(difference: dict[str, object], passes: bool) -> None:
    assert drill.is_passed([CELL | difference]) is passes
    assert not drill.is_passed([])
