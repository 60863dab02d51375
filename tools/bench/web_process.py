"""A web process on a benchmark database, with the alternatives installed as well, and a person signed in."""

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from tools.bench import databases
from tools.bench.databases import BenchDatabase, BenchError
from tools.processes import ROOT, free_port

START_TIMEOUT = 60.0
_BUFFER = 1 << 20


@dataclass(frozen=True)
class TimedDownload:
    """A download: seconds to its first and to its last byte, and its size including headers."""

    first_byte: float
    whole: float
    size: int


@dataclass(frozen=True)
class TimedPage:
    """A page as received, and its milliseconds."""

    status: int
    body: bytes
    milliseconds: float


class WebProcess:
    """One gunicorn worker with eight threads, as in the deployment guide."""

    def __init__(self, database: BenchDatabase) -> None:
        self.database = database
        self.port = free_port()
        self.cookie = database.inside("session")["cookie"]
        with (databases.FOLDER / "web.log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                [
                    *(
                        sys.executable,
                        "-m",
                        "gunicorn",
                        "backoffice.wsgi",
                        "--bind",
                        f"127.0.0.1:{self.port}",
                    ),
                    *("--worker-class", "gthread", "--workers", "1", "--threads", "8", "--timeout", "600"),
                    *("--keep-alive", "600"),
                ],
                cwd=ROOT,
                env=database.environment,
                stdout=log,
                stderr=log,
            )
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def wait(self) -> None:
        """Return once it responds. Raises BenchError."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.get("/account/")
            except OSError:
                self._connection.close()
                time.sleep(0.1)
            else:
                return
        raise BenchError(f"The web process does not answer; {databases.FOLDER / 'web.log'} may say why.")

    def stop(self) -> None:
        self._connection.close()
        self.process.terminate()
        self.process.wait()

    def get(self, path: str) -> TimedPage:
        """A page, over a persistent connection, compressed as for browsers. Raises BenchError."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        response = self._connection.getresponse()
        body = response.read()
        taken = (time.perf_counter() - began) * 1000
        if response.status >= 400:
            raise BenchError(f"{path} answered {response.status}")
        return TimedPage(response.status, body, taken)

    def download(self, path: str) -> TimedDownload:
        """A file, read as fast as possible and discarded. Raises BenchError unless it arrived completely."""
        buffer, size, head, tail = bytearray(_BUFFER), 0, b"", b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=600) as line:
            began = time.perf_counter()
            line.sendall(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\nConnection: close\r\n\r\n".encode()
            )
            first = 0.0
            while got := line.recv_into(buffer):
                first = first or time.perf_counter() - began
                head = head or bytes(buffer[: min(got, 2000)])
                tail = (tail + bytes(buffer[max(0, got - 16) : got]))[-16:]
                size += got
            whole = time.perf_counter() - began
        is_whole = tail.endswith(b"0\r\n\r\n") if b"chunked" in head.lower() else size > 0
        if b" 200 " not in head[:20] or b"text/csv" not in head or not is_whole:
            raise BenchError(f"{path} did not arrive as a file: {head[:200]!r}")
        return TimedDownload(first, whole, size)

    @contextmanager
    def growth(self) -> Iterator[list[float]]:
        """By how many MiB the resident memory of the worker grows at most while the block runs."""
        [worker] = psutil.Process(self.process.pid).children()
        before = highest = worker.memory_info().rss
        found, done = [0.0], threading.Event()

        def watch() -> None:
            nonlocal highest
            while not done.wait(0.02):
                highest = max(highest, worker.memory_info().rss)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield found
        finally:
            done.set()
            thread.join()
            found[0] = (max(highest, worker.memory_info().rss) - before) / 2**20


@contextmanager
def web_process(database: BenchDatabase) -> Iterator[WebProcess]:
    """A running web process, ended after the block."""
    made = WebProcess(database)
    try:
        made.wait()
        yield made
    finally:
        made.stop()
