"""Many worker processes at low cost: each task runs in a process forked from one that has loaded everything.

`python -m tests.faults.harness.forked_workers` reads lines of JSON, with `task`, `arguments`, `fault_points`,
`patience` and `folder`, and writes the process id of each. The task is the same as in Celery; only starting a
process is cheaper here.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.faults.harness.processes import PATIENCE, TIMEOUT
from tools.processes import ROOT, clean_environment


@dataclass
class ForkedWorker:
    """A process that runs one task and ends, or is killed or frozen at a fault point."""

    process: psutil.Process
    folder: Path

    def has_reached(self, point: str) -> bool:
        """Whether it was killed or frozen at this fault point."""
        return (self.folder / f"fault-{point}").exists()

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, in any way."""
        return not self.process.is_running()

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped."""
        try:
            return bool(self.process.status() == psutil.STATUS_STOPPED)
        except psutil.NoSuchProcess:
            return False


@dataclass
class ForkedWorkers:
    """The process from which the workers are forked. Its workers end with it."""

    folder: Path
    environment: dict[str, str]
    children: int = 0
    running: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        own = {"COUNTERSIGN_DATA_DIR": str(self.folder), **self.environment}
        with (self.folder / "log").open("ab") as log:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.harness.forked_workers"],
                cwd=ROOT,
                env=clean_environment(own),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def run(
        self,
        task: str,
        *arguments: str,
        fault_points: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> ForkedWorker:
        """Run this task in a new process.

        `fault_points` says where it is killed or frozen. `patience` is how long it may take to begin sending,
        and to wait for the response.
        """
        assert self.running is not None
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        self.children += 1
        folder = self.folder / str(self.children)
        folder.mkdir()
        order = {
            "task": task,
            "arguments": arguments,
            "fault_points": dict(fault_points or {}),
            "patience": patience,
            "folder": str(folder),
        }
        print(json.dumps(order), file=self.running.stdin, flush=True)
        line = self.running.stdout.readline()
        assert line, f"The worker pool ended: {self.log()}"
        return ForkedWorker(psutil.Process(int(line)), folder)

    def log(self) -> str:
        """The output of all of them."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End it and all remaining workers."""
        if self.running is not None:
            os.killpg(self.running.pid, signal.SIGKILL)
            with self.running:
                self.running.wait(TIMEOUT)


def main() -> None:
    """Fork for every line until the end of the input."""
    import django

    django.setup()
    from backoffice import tasks
    from tests.sweeping import sweep_operations

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # reap ended children at once
    known = {"send": tasks.send, "sweep": sweep_operations}
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                _do(known[order["task"]], order)
            finally:
                if sys.exc_info()[0] is not None:
                    traceback.print_exc()
                os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    os.killpg(0, signal.SIGKILL)


def _do(task: Any, order: dict[str, Any]) -> None:
    """Run the task with the settings of a process started for this task alone."""
    from django.conf import settings

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    settings.FAULT_POINTS, settings.DATA_DIR = order["fault_points"], Path(order["folder"])
    settings.SEND_DEADLINE_SECONDS = settings.SEND_WITHIN_SECONDS = order["patience"]
    task(*order["arguments"])


if __name__ == "__main__":
    main()
