"""Real product processes on this test's database, which are killed, frozen and restarted by id."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from celery import Celery
from kombu import Exchange, Queue

from backoffice.celery import broker_options
from backoffice.core import fault_points
from tools.processes import Stack, free_port

TIMEOUT = 120.0  # long enough for a busy machine; waits end as soon as the condition is met
PATIENCE = 30  # seconds to begin sending and for the provider to respond: enough on a busy machine


def wait_until(
    condition: Callable[[], object], what: str, within: float = TIMEOUT, every: float = 0.02
) -> float:
    """Wait until the condition is true and return the seconds; fail after the deadline."""
    began, pause = time.monotonic(), threading.Event()
    while not condition():
        assert time.monotonic() - began < within, f"It did not happen in time: {what}"
        pause.wait(every)
    return time.monotonic() - began


@dataclass
class ProductProcesses:
    """Product processes, started on request. Each has a folder of its own, and so its own fault points."""

    folder: Path
    environment: dict[str, str]
    broker: str
    queue: str
    is_stopped: bool = False
    stack: Stack = field(init=False)

    def __post_init__(self) -> None:
        self.stack = Stack(self.folder, free_port(), free_port())

    @property
    def web(self) -> str:
        """Address of the web process."""
        return self.stack.web

    def start(self, name: str, *arguments: str, points: str = "", **environment: str) -> None:
        """Start a process. At each armed fault point it does what `points` says: kill or stop."""
        own = self.folder / name
        own.mkdir(exist_ok=True)
        for point in fault_points.NAMES:
            self._mark(name, point).touch()
        self.stack.extra = {
            "COUNTERSIGN_DEMO": "0",
            "COUNTERSIGN_DATA_DIR": str(own),
            "COUNTERSIGN_BROKER_URL": self.broker,
            "COUNTERSIGN_FAULT_POINT": ",".join(f"{point}={points}" for point in fault_points.NAMES)
            if points
            else "",
            "COUNTERSIGN_SEND_DEADLINE_SECONDS": str(PATIENCE),
            **self.environment,
            **environment,
        }
        self.stack.run(name, *arguments)

    def start_worker(
        self, name: str = "worker", *, points: str = "", children: int = 3, **environment: str
    ) -> None:
        """Start a Celery worker with its pool, as in production, and return once it consumes the queue."""
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        pool = ("--pool", "prefork", "--concurrency", str(children))
        listens = ("-Q", self.queue, "-n", f"{name}@{self.queue}", "-l", "info")
        before = self.log(name).count(" ready.")
        self.start(
            name,
            "-m",
            "celery",
            "-A",
            "backoffice.celery",
            "worker",
            *pool,
            *quiet,
            *listens,
            points=points,
            **environment,
        )
        wait_until(lambda: self.log(name).count(" ready.") > before, f"{name} is ready\n{self.log(name)}")

    def start_sweeper(self, name: str = "sweeper", **environment: str) -> None:
        self.start(name, "manage.py", "sweep", "--every", "0.2", **environment)

    def wait_for_journals(self, *names: str) -> None:
        """Wait until these have a journal. Each is a machine of its own; one that begins its journal after another
        machine has sent pauses payments.
        """
        journals = [self.folder / name / "journal" for name in names]
        wait_until(lambda: all(any(one.glob("*.jsonl")) for one in journals), f"{names} have journals")

    def start_web(self, name: str = "web", *, points: str = "", **environment: str) -> None:
        """Start the web process and return once its pages respond."""
        bind = ("--bind", f"127.0.0.1:{self.stack.web_port}")
        size = ("--threads", "4", "--log-level", "warning")
        unhurried = ("--timeout", "0")  # gunicorn must not kill a worker that the test has frozen
        arguments = ("-m", "gunicorn", "backoffice.wsgi", *bind, *size, *unhurried)
        self.start(name, *arguments, points=points, COUNTERSIGN_DEBUG="1", **environment)
        self.stack.wait_for(name, f"{self.web}/account/sign-in/")

    def arm(self, name: str, point: str) -> None:
        """The next process of this family that reaches the fault point is killed or frozen there."""
        self._mark(name, point).unlink(missing_ok=True)

    def has_reached(self, name: str, point: str) -> bool:
        """Whether a process was killed or frozen there since it was armed."""
        return self._mark(name, point).exists()

    def wait_for_the_freeze(self, name: str, point: str) -> psutil.Process:
        """The process of the family that is frozen at the point."""
        wait_until(
            lambda: self.has_reached(name, point) and self.frozen(name), f"somebody freezes at {point}"
        )
        [frozen] = self.frozen(name)
        return frozen

    def children(self, name: str) -> list[psutil.Process]:
        """The running children: the pool of a worker, or the workers of the web process."""
        family = psutil.Process(self.stack.processes[name].pid).children(recursive=True)
        return [child for child in family if is_alive(child)]

    def frozen(self, name: str) -> list[psutil.Process]:
        """The children that are stopped."""
        return [child for child in self.children(name) if child.status() == psutil.STATUS_STOPPED]

    def kill(self, name: str) -> None:
        """Kill a process and its children, and wait for its end."""
        self.signal(name, signal.SIGKILL)
        self.stack.processes[name].wait(TIMEOUT)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process and its children."""
        os.killpg(self.stack.processes[name].pid, number)

    def is_running(self, name: str) -> bool:
        """Whether it was started and has not ended."""
        return name in self.stack.processes and self.stack.processes[name].poll() is None

    def log(self, name: str) -> str:
        """The output of all processes of this name."""
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def taken(self, *names: str) -> int:
        """How many messages these workers received."""
        return sum(self.log(name).count("] received") for name in names)

    def done(self, *names: str) -> int:
        """How many messages these workers finished."""
        return sum(self.log(name).count(" succeeded in ") for name in names)

    def enqueue(self, *operations: UUID) -> None:
        """Enqueue the sending of these operations."""
        with self.task_queue() as app:
            for operation in operations:
                app.send_task("operations.send", args=[str(operation)], queue=self.queue)

    def waiting(self) -> int:
        """How many messages are queued at the broker."""
        with self.at_the_broker() as channel:
            return int(channel.queue_declare(self.queue, passive=True).message_count)

    def flush(self) -> None:
        """Delete the broker's messages: for Redis the whole database, as after a restart; otherwise the
        queue.
        """
        with self.at_the_broker() as channel:
            if self.broker.startswith("redis"):
                channel.client.flushdb()
            else:
                channel.queue_purge(self.queue)

    @contextmanager
    def task_queue(self) -> Iterator[Celery]:
        """A Celery client of the broker."""
        with Celery(broker=self.broker) as app:
            app.conf.broker_transport_options = broker_options(self.broker, self.folder / "worker")
            yield app

    @contextmanager
    def at_the_broker(self) -> Iterator[Any]:
        """A channel of the broker; its class depends on the transport."""
        with self.task_queue() as app, app.connection_for_write() as connected:
            yield connected.default_channel

    def stop(self) -> None:
        """Kill every process and delete the queues. Calling it again does nothing."""
        if self.is_stopped:
            return
        self.is_stopped = True
        for name in self.stack.processes:
            if self.is_running(name):
                self.signal(name, signal.SIGKILL)
        self.stack.stop()
        with self.at_the_broker() as channel:
            Queue(self.queue, channel=channel).delete()
            Exchange(self.queue, channel=channel).delete()
            if self.broker.startswith("redis"):  # with Redis, kombu does not delete the bindings
                for key in channel.client.scan_iter(f"_kombu.binding*.{self.queue}"):
                    channel.client.delete(key)

    def _mark(self, name: str, point: str) -> Path:
        return self.folder / name / f"fault-{point}"


def is_alive(process: psutil.Process) -> bool:
    """Whether this process is running or stopped; a zombie is not alive."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


MakeProcesses = Callable[..., ProductProcesses]
