"""What becomes of the processes of a stack when nobody is left to end them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.sandbox_process import ROOT
from tests.tools.test_brokers import wait_until
from tools.processes import Stack, free_port

pytestmark = pytest.mark.stack

WAIT = "import threading; threading.Event().wait()"
WITH_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WAIT!r}])"
PARENT = f"""
import sys, threading
from pathlib import Path
from tools.processes import Stack
stack = Stack(Path(sys.argv[1]), 1, 2)
stack.run("one", "-c", {WAIT!r})
stack.run("two", "-c", {WITH_A_CHILD!r})
threading.Event().wait()
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has started a stack of two, one of which has a child of its own."""
    started = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], cwd=ROOT)
    yield started
    started.kill()
    started.wait()


def runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def test_processes_end_when_their_parent_is_killed(parent: "subprocess.Popen[bytes]") -> None:
    family = psutil.Process(parent.pid)
    wait_until(lambda: len(family.children(recursive=True)) == 5)
    children = family.children(recursive=True)
    # Between fork and exec the watchdog's own child is a shell, too.
    wait_until(lambda: [child.cmdline()[:1] for child in children].count(["sh"]) == 1)
    parent.kill()
    parent.wait()
    try:
        wait_until(lambda: not [child for child in children if runs(child)])
    finally:
        for child in filter(runs, children):
            child.kill()


def test_a_stopped_stack_leaves_no_watchdog_and_can_restart(tmp_path: Path) -> None:
    stack = Stack(tmp_path, free_port(), free_port())
    for _ in range(2):
        stack.run("one", "-c", WAIT)
        assert stack.watchdog is not None
        processes = [psutil.Process(one.pid) for one in (stack.watchdog, stack.processes["one"])]
        stack.stop()
        assert not [process for process in processes if runs(process)]
