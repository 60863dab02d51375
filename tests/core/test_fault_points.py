"""Places where a test has a process killed or frozen."""

import signal
import subprocess
from pathlib import Path

import pytest

from backoffice.core import fault_points
from tools.processes import run_python

REACH = (
    "import django; django.setup(); from backoffice.core import fault_points; "
    "fault_points.reach('send.claimed'); print('went on')"
)


def reached(folder: Path, configured: str) -> "subprocess.CompletedProcess[str]":
    own = {"COUNTERSIGN_DATA_DIR": str(folder), "COUNTERSIGN_FAULT_POINT": configured}
    return run_python("-c", REACH, own=own, timeout=60)


def test_the_first_process_that_reaches_it_is_killed_and_the_next_goes_on(tmp_path: Path) -> None:
    assert reached(tmp_path, "send.claimed=kill").returncode == -signal.SIGKILL
    assert reached(tmp_path, "send.claimed=kill").stdout == "went on\n"


@pytest.mark.parametrize("configured", ["", "confirm.seen=kill"])
def test_without_being_wanted_here_nothing_happens(tmp_path: Path, configured: str) -> None:
    assert reached(tmp_path, configured).stdout == "went on\n"


def test_every_name_is_a_place_in_the_program() -> None:
    program = "".join(
        path.read_text() for path in Path("backoffice").rglob("*.py") if path.name != "fault_points.py"
    )
    assert {name for name in fault_points.NAMES if f'reach("{name}")' not in program} == set()
