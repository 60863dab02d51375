"""The databases of the benchmark: migrated, filled with generated transactions, kept between runs where that
is slow. And the web process on one of them, with the alternatives installed and a person signed in.
"""

import http.client
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql

from tools.bench.seeding import seed
from tools.processes import ROOT, Stack, StackError, free_port

SERVER = os.environ.get("BENCH_SERVER", "postgres://postgres@127.0.0.1:5432")
DATABASE_PREFIX = "countersign_bench"
FOLDER = ROOT / "var" / "bench"
THREADS = 8  # of a web process


@dataclass(frozen=True)
class BenchDatabase:
    """One database with the product's tables, and the means to run the product on it."""

    url: str

    def stack(self) -> Stack:
        """The product on this database, with the alternatives installed, and without a provider."""
        variables = {
            "DJANGO_SETTINGS_MODULE": "tools.bench.settings",
            "COUNTERSIGN_DEMO": "0",
            "COUNTERSIGN_DATABASE_URL": self.url,
            "COUNTERSIGN_WEBHOOK_KEYS": "",
            "COUNTERSIGN_LOG_LEVEL": "WARNING",
        }
        return Stack(FOLDER, free_port(), free_port(), extra=variables)

    def inside(self, what: str, **arguments: Any) -> Any:
        """The result of this function of `django_process`. Raises StackError."""
        module = ("-m", "tools.inside_django", "tools.bench.django_process")
        output = self.stack().python(*module, what, json.dumps(arguments))
        return json.loads(output.splitlines()[-1])

    def migrate(self) -> None:
        self.stack().manage("migrate", "--verbosity", "0", "--settings", "backoffice.settings")


def prepare() -> None:
    """Create the folder of the benchmark, and collect the static files that web processes need."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    empty = BenchDatabase(f"sqlite:///{FOLDER / 'nothing.sqlite3'}")
    empty.stack().manage("collectstatic", "--noinput", "--verbosity", "0")


@cache
def seeded(rows: int) -> BenchDatabase:
    """A PostgreSQL database with this many transactions, reused from an earlier run if its migrations are the
    same.
    """
    name = f"{DATABASE_PREFIX}_{rows}"
    database = BenchDatabase(f"{SERVER}/{name}")
    if not _is_reusable(name, rows):
        began = time.monotonic()
        print(f"Seeding {rows:,} transactions …", flush=True)
        _recreate(name, _migrated_name())
        for step in seed(database.url, rows):
            if rows > 100_000:
                print(f"  {time.monotonic() - began:4.0f} s: {step}", flush=True)
        _write_marker(name, rows, time.monotonic() - began)
    else:
        database.migrate()  # the other apps, whose migrations may have changed
    database.inside("refresh")
    return database


def drop_seeded(rows: int) -> None:
    """Drop the stored database with this many transactions."""
    _drop(f"{DATABASE_PREFIX}_{rows}")


def seconds_to_seed(rows: int) -> float:
    """How long its creation took."""
    with psycopg.connect(f"{SERVER}/{DATABASE_PREFIX}_{rows}") as session:
        [seconds] = session.execute("SELECT seconds FROM bench_marker").fetchone() or (0.0,)
        return float(seconds)


@contextmanager
def temporary_database(name: str, *, template: BenchDatabase | None = None) -> Iterator[BenchDatabase]:
    """A PostgreSQL database that is dropped after the block: migrated and empty, or a copy."""
    name = f"{DATABASE_PREFIX}_{name}_{os.getpid()}"
    _recreate(name, template.url.rpartition("/")[2] if template else _migrated_name())
    try:
        yield BenchDatabase(f"{SERVER}/{name}")
    finally:
        _drop(name)


@contextmanager
def sqlite_database(folder: Path) -> Iterator[BenchDatabase]:
    """An empty SQLite database in this folder."""
    shutil.copyfile(_migrated_file(), folder / "bench.sqlite3")
    yield BenchDatabase(f"sqlite:///{folder / 'bench.sqlite3'}")


def drop_template() -> None:
    """Drop the database from which those on PostgreSQL were created."""
    if _migrated_name.cache_info().currsize:
        _drop(_migrated_name())
        _migrated_name.cache_clear()


@cache
def _migrated_file() -> Path:
    """An SQLite database with all migrations, to be copied: applying them takes seconds each time."""
    path = FOLDER / "migrated.sqlite3"
    path.unlink(missing_ok=True)
    BenchDatabase(f"sqlite:///{path}").migrate()
    return path


@cache
def _migrated_name() -> str:
    """The same on PostgreSQL."""
    name = f"{DATABASE_PREFIX}_migrated_{os.getpid()}"
    _recreate(name, template="template1")
    BenchDatabase(f"{SERVER}/{name}").migrate()
    return name


def _is_reusable(name: str, rows: int) -> bool:
    try:
        with psycopg.connect(f"{SERVER}/{name}") as session:
            marker = session.execute("SELECT schema, rows FROM bench_marker").fetchone()
    except psycopg.Error:
        return False
    return marker == (_schema(), rows)


def _write_marker(name: str, rows: int, seconds: float) -> None:
    with psycopg.connect(f"{SERVER}/{name}") as session:
        session.execute("CREATE TABLE bench_marker (schema text, rows bigint, seconds float8)")
        session.execute("INSERT INTO bench_marker VALUES (%s, %s, %s)", [_schema(), rows, seconds])


def _schema() -> str:
    """The migrations of the ledger, which is seeded; new ones of other apps are applied to a stored database."""
    return " ".join(sorted(path.stem for path in ROOT.glob("backoffice/ledger/migrations/0*.py")))


def _recreate(name: str, template: str) -> None:
    _drop(name)
    with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as session:
        created = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        session.execute(created.format(sql.Identifier(name), sql.Identifier(template)))


def _drop(name: str) -> None:
    with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as session:
        session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@dataclass(frozen=True)
class TimedDownload:
    """A download: seconds to its first and to its last byte, and its size including headers."""

    first_byte: float
    whole: float
    size: int


@dataclass(frozen=True)
class TimedPage:
    """A page as received, and its milliseconds."""

    body: bytes
    milliseconds: float


class WebProcess:
    """One gunicorn worker with eight threads, as in the deployment guide, and the session of a person."""

    def __init__(self, stack: Stack, cookie: str) -> None:
        self.stack, self.cookie = stack, cookie
        self._connection = http.client.HTTPConnection("127.0.0.1", stack.web_port, timeout=600)

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str) -> TimedPage:
        """A page, over a persistent connection, compressed as for browsers. Raises StackError."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        response = self._connection.getresponse()
        body = response.read()
        taken = (time.perf_counter() - began) * 1000
        if response.status >= 400:
            raise StackError(f"{path} answered {response.status}")
        return TimedPage(body, taken)

    def download(self, path: str) -> TimedDownload:
        """A file, read as fast as possible and discarded. Raises StackError unless it arrived completely."""
        buffer, size, head, tail = bytearray(1 << 20), 0, b"", b""
        with socket.create_connection(("127.0.0.1", self.stack.web_port), timeout=600) as line:
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
            raise StackError(f"{path} did not arrive as a file: {head[:200]!r}")
        return TimedDownload(first, whole, size)

    @contextmanager
    def growth(self) -> Iterator[list[float]]:
        """By how many MiB the resident memory of the worker grows at most while the block runs."""
        [worker] = psutil.Process(self.stack.processes["web"].pid).children()
        before = highest = worker.memory_info().rss
        growth, done = [0.0], threading.Event()

        def watch() -> None:
            nonlocal highest
            while not done.wait(0.02):
                highest = max(highest, worker.memory_info().rss)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield growth
        finally:
            done.set()
            thread.join()
            growth[0] = (max(highest, worker.memory_info().rss) - before) / 2**20


@contextmanager
def web_process(database: BenchDatabase) -> Iterator[WebProcess]:
    """A running web process, ended after the block."""
    stack = database.stack()
    try:
        stack.start_web("--timeout", "600", "--keep-alive", "600")
        with closing(WebProcess(stack, database.inside("session")["cookie"])) as web:
            for _ in range(3 * THREADS):  # each thread composes its queries once
                web.get("/")
            yield web
    finally:
        stack.stop()
