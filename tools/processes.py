"""Start and stop the processes of one Countersign: simulated provider, worker, sweeper and web."""

import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import requests

from payments_gateway.profile.model import ProfileName

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "countersign.sqlite3"
START_TIMEOUT = 60.0
WEBHOOK_SECRET = "of-a-simulation-so-nobody-needs-to-guess-it"  # noqa: S105
STOP_TIMEOUT = 10.0
_FIRST_SUGGESTED_PORT = 8100
_FIRST_PORT = 15_000  # above the ports of well-known servers
_FIRST_OUTGOING_PORT = 32_768
_KILL_AT_END_OF_INPUT = 'for group in $(cat); do kill -s KILL -- "-$group"; done'


def clean_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process of the product: no COUNTERSIGN_ variable of the caller, only these."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    fixed = {
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
        "COUNTERSIGN_ENV_FILE": "",
        "PYTHONPATH": str(ROOT),
    }
    return {**inherited, **fixed, **own}


def run_python(
    *arguments: str,
    own: Mapping[str, str],
    given: str = "",
    timeout: float | None = None,
    folder: Path = ROOT,
    program: str = sys.executable,
) -> "subprocess.CompletedProcess[str]":
    """Run Python with this input in a clean environment with these variables, whatever its exit status.

    `folder` is the working directory and the import path; `program` is run instead of Python.
    """
    return subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [program, *arguments],
        cwd=folder,
        env={**clean_environment(own), "PYTHONPATH": str(folder)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


class StackError(Exception):
    """The processes could not be started; the message says why and what to do."""


@dataclass
class Stack:
    """All processes of `make demo`, in one folder and on two ports. Use it as a context manager.

    A clean environment: no COUNTERSIGN_ variable of the caller is passed on, except the ones in `extra`.
    """

    folder: Path
    web_port: int
    sandbox_port: int
    extra: Mapping[str, str] = field(default_factory=dict)
    settle_after: float = 4.0
    transactions: int = 6000
    profile: ProfileName = "specification"  # of the simulated provider and of the product
    first_command: str = ""  # Python code run once, after the sample history of a new folder is made
    is_demo: bool = True  # with the demo's people and history; otherwise the installation begins empty
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    watchdog: subprocess.Popen[str] | None = None
    lock: IO[bytes] | None = None

    @property
    def web(self) -> str:
        """Address of the back office."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def sandbox(self) -> str:
        """Address of the simulated provider."""
        return f"http://127.0.0.1:{self.sandbox_port}"

    @property
    def webhook_keys(self) -> Path:
        """The file with the simulated provider's public keys, written once they have been read."""
        return self.folder / "webhook-keys.pem"

    @property
    def variables(self) -> dict[str, str]:
        """The COUNTERSIGN_ variables of each process."""
        return {
            "COUNTERSIGN_DEMO": str(self.is_demo),
            "COUNTERSIGN_DATA_DIR": str(self.folder),
            "COUNTERSIGN_PUBLIC_URL": self.web,
            "COUNTERSIGN_EMAIL_URL": f"filemail:///{self.folder / 'mailbox'}",
            "COUNTERSIGN_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "COUNTERSIGN_WEBHOOK_KEYS": str(self.webhook_keys),
            "COUNTERSIGN_GATEWAY_URL": f"{self.sandbox}/v2",
            "COUNTERSIGN_GATEWAY_URL_V4": f"{self.sandbox}/v4",
            "COUNTERSIGN_GATEWAY_PROFILE": self.profile,
            **self.extra,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment of each process."""
        return clean_environment(self.variables)

    @property
    def is_new(self) -> bool:
        """Whether this folder has no database yet."""
        return not (self.folder / DATABASE).exists()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return once the pages respond. Raises StackError."""
        self.lock = _lock_folder(self.folder)
        for port in (self.web_port, self.sandbox_port):
            _check_port_is_free(port)
        self.start_sandbox()
        self.webhook_keys.write_text(self.webhook_public_keys())
        self.set_sandbox(token_reuse=True, settle_after=0)  # while the sample history is made
        is_new = self.is_new
        for journal in (self.folder / "journal").glob("*") if is_new else ():
            journal.unlink()  # of a database that was deleted to begin anew
        self._prepare_database()
        if is_new and self.first_command:
            self.manage("shell", "--verbosity", "0", "--command", self.first_command)
        self.set_sandbox(token_reuse=False, settle_after=self.settle_after)
        self.start_web()
        worker = ("-m", "celery", "-A", "backoffice.celery", "worker")
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        self.run("worker", *worker, "--pool", "threads", "--concurrency", "4", *quiet)
        self.run("sweeper", "manage.py", "sweep")

    def start_sandbox(self) -> None:
        """Start the simulated provider alone and return once it responds. Raises StackError."""
        self.run("sandbox", *self._sandbox_arguments())
        self.wait_for("sandbox", f"{self.sandbox}/_sandbox/otp")

    def start_web(self, *options: str) -> None:
        """Start the web process alone, as in the deployment guide, and return once its pages respond.

        Raises StackError.
        """
        self.run(
            *("web", "-m", "gunicorn", "backoffice.wsgi", "--bind", f"127.0.0.1:{self.web_port}"),
            *("--log-level", "warning"),
            *options,
        )
        self.wait_for("web", f"{self.web}/account/sign-in/")

    def run(self, name: str, *arguments: str) -> None:
        """Start Python in its own process group; its output goes to `logs/<name>.log`.

        It ends with this process, even if that is killed.
        """
        self.run_program(name, sys.executable, *arguments)

    def run_program(self, name: str, program: str, *arguments: str) -> None:
        """Like `run`, with another program than Python."""
        logs = self.folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                [program, *arguments],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._watch(self.processes[name])

    def one_time_code(self) -> str:
        """The one-time code that the simulated provider accepts now."""
        return str(requests.get(f"{self.sandbox}/_sandbox/otp", timeout=10).json()["totp"])

    def webhook_public_keys(self) -> str:
        """The public keys with which the simulated provider signs webhooks, in PEM."""
        keys = requests.get(f"{self.sandbox}/_sandbox/webhooks/keys", timeout=30).json()["keys"]
        return "".join(key["pem"] for key in keys)

    def set_sandbox(self, **options: object) -> None:
        """Change options of the simulated provider, until its next start."""
        requests.post(f"{self.sandbox}/_sandbox/options", json=options, timeout=30).raise_for_status()

    def manage(self, *arguments: str, given: str = "") -> str:
        """Run a management command with this input and return its output. Raises StackError if it fails."""
        return self.python("manage.py", *arguments, given=given)

    def python(self, *arguments: str, given: str = "") -> str:
        """Run Python in the environment of the processes and return its output. Raises StackError."""
        done = run_python(*arguments, own=self.variables, given=given)
        if done.returncode:
            raise StackError(f"{' '.join(arguments)[:200]} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def wait_for(self, name: str, address: str, *, certificate: str | None = None) -> None:
        """Return once the address responds. Raises StackError if the process ends first or takes too long."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self.processes[name].poll() is not None:
                raise StackError(
                    f"The {name} process ended at once. The end of its log:\n{self.log_tail(name)}"
                )
            if _answers(address, certificate):
                return
            time.sleep(0.05)
        raise StackError(f"The {name} process does not respond at {address}:\n{self.log_tail(name)}")

    def log_tail(self, name: str) -> str:
        """The last lines of a process's log."""
        return (self.folder / "logs" / f"{name}.log").read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """End every process, first with SIGTERM, then with SIGKILL, the provider last."""
        for process in reversed(self.processes.values()):
            _signal_group(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT
        for process in reversed(self.processes.values()):
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            _signal_group(process, signal.SIGKILL)  # the rest of its group, including its children
            process.wait()
        self.processes.clear()
        if self.watchdog is not None:
            with self.watchdog:
                self.watchdog.kill()
            self.watchdog = None
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def _prepare_database(self) -> None:
        if self.is_demo:
            self.manage("prepare_demo")
            return
        self.manage("migrate", "--verbosity", "0", "--no-input")
        self.manage("collectstatic", "--verbosity", "0", "--no-input")

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Have the watchdog kill its group when this process ends: the kernel then closes the watchdog's input."""
        if self.watchdog is None:
            self.watchdog = subprocess.Popen(  # noqa: S603 - our own script
                ["sh", "-c", _KILL_AT_END_OF_INPUT],  # noqa: S607 - wherever it is
                stdin=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        print(process.pid, file=self.watchdog.stdin, flush=True)

    def _sandbox_arguments(self) -> tuple[str, ...]:
        database = str(self.folder / "sandbox.sqlite3")
        return (
            *("manage.py", "sandbox", "--port", str(self.sandbox_port)),
            *("--database", database, "--settle-after", str(self.settle_after)),
            *("--transactions", str(self.transactions), "--profile", self.profile),
        )


def free_port() -> int:
    """A free port below the range that systems use for outgoing connections.

    One in that range could be taken before our process listens, which takes seconds.
    """
    while True:
        port = _FIRST_PORT + secrets.randbelow(_FIRST_OUTGOING_PORT - _FIRST_PORT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def temporary_stack(folder: Path, **changes: object) -> Iterator[Stack]:
    """A stack on free ports, stopped after the block."""
    with Stack(folder, free_port(), free_port(), **changes) as stack:  # type: ignore[arg-type]
        yield stack


@contextmanager
def temporary_sandbox(folder: Path, *, transactions: int) -> Iterator[Stack]:
    """The simulated provider alone, on a free port, with a history of this length."""
    stack = Stack(folder, free_port(), free_port(), transactions=transactions)
    try:
        stack.start_sandbox()
        yield stack
    finally:
        stack.stop()


def _lock_folder(folder: Path) -> IO[bytes]:
    """Lock the folder until this file is closed or the process ends. Raises StackError if it is locked."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / "running.lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise StackError(
            f"Another instance is running in {folder}, and two would overwrite each other's data. Stop that instance, "
            f"or choose another folder: COUNTERSIGN_DATA_DIR=/tmp/second {_demo_on_free_ports()}"
        ) from exc
    return lock


def _check_port_is_free(port: int) -> None:
    if not _is_free(port):
        raise StackError(
            f"Port {port} is used by another program. Stop that program, or choose other ports: {_demo_on_free_ports()}"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _demo_on_free_ports() -> str:
    """The command that starts the demo on two ports that are free now."""
    web, sandbox = islice(filter(_is_free, range(_FIRST_SUGGESTED_PORT, _FIRST_OUTGOING_PORT)), 2)
    return f"make demo PORT={web} SANDBOX_PORT={sandbox}"


def _answers(address: str, certificate: str | None) -> bool:
    try:
        return requests.get(address, timeout=2, allow_redirects=False, verify=certificate).status_code < 500
    except requests.RequestException:
        return False


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
