"""`make demo` as its user has it: start, Ctrl-C, start again, and what goes wrong."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.sandbox_process import ROOT
from tests.tools.test_brokers import wait_until
from tools.processes import free_port

pytestmark = pytest.mark.stack


@dataclass
class Demo:
    """One run of the command."""

    running: "subprocess.Popen[bytes]"
    log: Path

    def said(self) -> str:
        """What it has printed."""
        return self.log.read_text()

    def is_ready(self) -> bool:
        """Whether it has said so; fails if it has ended instead."""
        assert self.running.poll() is None, self.said()
        return "Countersign is ready" in self.said()

    def processes(self) -> list[psutil.Process]:
        """Every process that it has started and that runs now."""
        return psutil.Process(self.running.pid).children(recursive=True)


@contextmanager
def demo(
    folder: Path | None,
    *,
    port: int | None = None,
    log: Path | None = None,
    module: str = "tools.demo",
    **environment: str,
) -> Iterator[Demo]:
    """The command in a folder, on free ports or on a given one; no process of it outlives the block."""
    ports = ["--port", str(port or free_port()), "--sandbox-port", str(free_port())]
    where = ["--folder", str(folder)] if folder else []
    arguments = [sys.executable, "-m", module, *ports, *where]
    log = log or (folder or ROOT).parent / "said"
    environment = {**os.environ, **environment}
    with log.open("wb") as output:
        started = Demo(
            subprocess.Popen(arguments, cwd=ROOT, stdout=output, stderr=output, env=environment), log
        )
    try:
        yield started
    finally:
        if started.running.poll() is None:
            started.running.terminate()
        started.running.wait(120)


def operations(folder: Path) -> set[str]:
    """The ids of all operations that are kept there."""
    with closing(sqlite3.connect(folder / "countersign.sqlite3")) as database:
        return {row[0] for row in database.execute("SELECT id FROM operations_operation")}


def still_running(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that run, or whose process group has anybody left."""
    return [process for process in processes if process.is_running() or group_is_alive(process.pid)]


def group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_demo_stops_at_ctrl_c_resumes_and_ends_with_any_of_its_processes(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(None, log=tmp_path / "first", COUNTERSIGN_DATA_DIR=str(folder)) as first:
        wait_until(first.is_ready)
        assert f"Data           {folder}\n" in first.said()
        processes = first.processes()
        assert len(processes) >= 5
        assert_nobody_else_runs_in(folder)
        assert all(process.is_running() for process in processes)
        for _ in range(2):  # an impatient person presses twice
            first.running.send_signal(signal.SIGINT)
        assert first.running.wait(120) == 0
        assert "Stopped. The data is kept" in first.said()
        assert "Traceback" not in first.said()
        wait_until(lambda: still_running(processes) == [])
    kept = operations(folder)
    assert kept
    with demo(folder) as second:
        wait_until(second.is_ready)
        assert operations(folder) == kept
        processes = second.processes()
        [sweeper] = [process for process in processes if process.cmdline()[-1] == "sweep"]
        sweeper.kill()
        assert second.running.wait(120) == 1
        assert "The sweeper process ended unexpectedly" in second.said()
        wait_until(lambda: still_running(processes) == [])


def assert_nobody_else_runs_in(folder: Path) -> None:
    """A second one in the same folder is refused, with the way out."""
    with demo(folder, log=folder.parent / "refused") as refused:
        assert refused.running.wait(120) == 1
        assert f"The demo did not start. Another instance is running in {folder}" in refused.said()
        assert "COUNTERSIGN_DATA_DIR=" in refused.said()


def test_a_port_in_use_is_reported_and_prevents_startup(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        taken: int = server.getsockname()[1]
        with demo(tmp_path / "demo", port=taken) as refused:
            assert refused.running.wait(120) == 1
    assert f"The demo did not start. Port {taken} is used by another program" in refused.said()
    assert "Traceback" not in refused.said()
