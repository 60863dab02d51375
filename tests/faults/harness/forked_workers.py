"""Workers by the hundred: each task in a process of its own, forked from one that has everything loaded.

`python -m tests.faults.harness.forked_workers` reads lines of JSON, with `task`, `arguments`, `fault_points`,
`patience` and `folder`, and writes the id of the process of each. The task is the one that Celery calls; only starting
a process is cheap here.
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
from tools.processes import ROOT


@dataclass
class ForkedWorker:
    """A process that does one task and ends, or is stricken on its way."""

    process: psutil.Process
    folder: Path

    def has_reached(self, point: str) -> bool:
        """Whether it was stricken there."""
        return (self.folder / f"fault-{point}").exists()

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, one way or another."""
        return not self.process.is_running()

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still."""
        try:
            return bool(self.process.status() == psutil.STATUS_STOPPED)
        except psutil.NoSuchProcess:
            return False


@dataclass
class ForkedWorkers:
    """The process that the others are forked from. It ends, and all of them with it, when this one does."""

    folder: Path
    environment: dict[str, str]
    children: int = 0
    running: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        """Start it."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
        own = {"DJANGO_SETTINGS_MODULE": "backoffice.settings", "COUNTERSIGN_DATA_DIR": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.harness.forked_workers"],
                cwd=ROOT,
                env={**inherited, **own, **self.environment},
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
        """Have a new process do this task. `fault_points` say what it does to itself, and where.

        `patience` is how long it may take to begin sending, and to wait for the answer.
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
        assert line, f"The nursery ended: {self.log()}"
        return ForkedWorker(psutil.Process(int(line)), folder)

    def log(self) -> str:
        """What all of them wrote."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End it and whoever is left of its family."""
        if self.running is not None:
            os.killpg(self.running.pid, signal.SIGKILL)
            with self.running:
                self.running.wait(TIMEOUT)


def main() -> None:
    """Fork for every line, until there are no more."""
    import django

    django.setup()
    from backoffice.operations import tasks

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends is gone at once
    known = {"send": tasks.send, "sweep": tasks.sweep}
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
    """As the settings of a process say that was started for this task alone."""
    from django.conf import settings

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    settings.FAULT_POINTS, settings.DATA_DIR = order["fault_points"], Path(order["folder"])
    settings.SEND_DEADLINE_SECONDS = settings.SEND_WITHIN_SECONDS = order["patience"]
    task(*order["arguments"])


if __name__ == "__main__":
    main()
