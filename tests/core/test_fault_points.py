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


def test_a_fault_point_kills_the_first_process_only(tmp_path: Path) -> None:
    assert reached(tmp_path, "send.claimed=kill").returncode == -signal.SIGKILL
    assert reached(tmp_path, "send.claimed=kill").stdout == "went on\n"


@pytest.mark.parametrize("configured", ["", "confirm.seen=kill"])
def test_an_inactive_fault_point_does_nothing(tmp_path: Path, configured: str) -> None:
    assert reached(tmp_path, configured).stdout == "went on\n"


def test_every_fault_point_is_used_in_the_code() -> None:
    program = "".join(
        path.read_text() for path in Path("backoffice").rglob("*.py") if path.name != "fault_points.py"
    )
    assert {name for name in fault_points.NAMES if f'reach("{name}")' not in program} == set()
