"""Processes on machines whose clocks are off by hours."""

import subprocess

import pytest
from django.db import connection

FASTER, SLOWER = "+5h", "-5h"
SLEEPS = {"FAKETIME_DONT_FAKE_MONOTONIC": "0"}
"""Of a process that calls `time.sleep`, as gunicorn does: with a true monotonic clock libfaketime 0.9.10 refuses it."""


@pytest.fixture
def clock_of() -> dict[str, dict[str, str]]:
    """The environment of a process on a machine whose clock is off by this much."""
    if connection.vendor != "postgresql":
        pytest.skip("With SQLite there is one machine")
    library = subprocess.run(
        ["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return {
        off: {"LD_PRELOAD": library, "FAKETIME": off, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        for off in (FASTER, SLOWER)
    }
