"""Bodies that come slowly, in part or without an end, over real connections to the real server."""

import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backoffice import web_server
from backoffice.webhooks.endpoint import MAX_BODY_BYTES
from tests.payments_gateway.vectors.make_vectors import FOLDER
from tests.sandbox_process import ROOT
from tests.webhooks.steps import ADDRESS, SECRET, status_delivery
from tools.processes import clean_environment, free_port

PATIENCE = 120  # seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps what it keeps."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """Where the product's own server answers, with one thread. It has no tables but the one of deliveries."""
    number = free_port()
    own = {"COUNTERSIGN_DATA_DIR": str(folder), "COUNTERSIGN_WEBHOOK_SECRET": SECRET}
    environment = clean_environment({**own, "COUNTERSIGN_WEBHOOK_KEYS": str(FOLDER / "current.pub.pem")})
    serve = ("-m", "gunicorn", "backoffice.wsgi", "--threads", "1")
    migrate = (sys.executable, "manage.py", "migrate", "webhooks")
    with (folder / "log").open("wb") as log:
        subprocess.run(migrate, cwd=ROOT, env=environment, stdout=log, stderr=log, check=True)
        server = subprocess.Popen(
            [sys.executable, *serve, "--bind", f"127.0.0.1:{number}"],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_it_listens(number, server, folder / "log")
        yield number
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _wait_until_it_listens(number: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", number)) == 0:
                return
        time.sleep(0.05)  # between two checks of a condition with a deadline
    raise AssertionError(log.read_text())


def begun(port: int, length: int) -> socket.socket:
    """A connection on which a body of so many bytes was announced, and none sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    head = f"POST {ADDRESS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def answer(connection: socket.socket) -> bytes:
    """What comes back until the other end is closed; nothing if it was hung up on."""
    received = b""
    try:
        while piece := connection.recv(4096):
            received += piece
            if b"\r\n\r\n" in received:
                break
    except ConnectionResetError:
        return b""
    return received


def test_a_slow_sender_is_disconnected_and_the_thread_freed(port: int) -> None:
    began = time.monotonic()
    with begun(port, 1000) as slow:
        slow.settimeout(0.2)
        while not is_disconnected(slow):
            assert time.monotonic() - began < PATIENCE
        assert time.monotonic() - began > web_server.BODY_SECONDS - 0.5
        with begun(port, 0) as next_one:
            assert b"HTTP/1.1 " in answer(next_one)


def is_disconnected(connection: socket.socket) -> bool:
    """Whether the other end is gone, after one byte more of the body and a moment."""
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_an_incomplete_body_is_not_stored(port: int, folder: Path) -> None:
    before = stored(folder)
    with begun(port, 1000) as connection:
        connection.sendall(b'{"event":')
        connection.shutdown(socket.SHUT_WR)
        assert answer(connection) == b""
    assert stored(folder) == before


def test_an_oversized_body_is_refused_before_it_is_read(port: int) -> None:
    with begun(port, 5_000_000) as connection:
        assert b" 413 " in answer(connection)


def in_chunks(port: int) -> socket.socket:
    """A connection on which a body in chunks was announced, and none sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    head = f"POST {ADDRESS} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def chunk(piece: bytes) -> bytes:
    """As it is on the wire; the empty one is the last."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def stored(folder: Path) -> int:
    """How often anything came that was kept."""
    with closing(sqlite3.connect(folder / "countersign.sqlite3")) as database:
        return int(
            database.execute("SELECT coalesce(sum(received_count), 0) FROM webhooks_delivery").fetchone()[0]
        )


def test_a_chunked_body_is_read_completely(port: int) -> None:
    body = status_delivery()
    with in_chunks(port) as connection:
        for piece in (body[:10], body[10:], b""):
            connection.sendall(chunk(piece))
        assert b" 200 " in answer(connection)


@pytest.mark.parametrize("rest", [b"", chunk(status_delivery())[:-20], b"no length\r\n"])
def test_unterminated_chunks_are_not_stored(port: int, folder: Path, rest: bytes) -> None:
    before = stored(folder)
    with in_chunks(port) as connection:
        connection.sendall(chunk(b'{"event":') + rest)
        connection.shutdown(socket.SHUT_WR)
        assert answer(connection)[:12] in {b"", b"HTTP/1.1 400"}
    assert stored(folder) == before


def test_oversized_chunks_are_refused(port: int) -> None:
    with in_chunks(port) as connection:
        connection.sendall(chunk(b"x" * (MAX_BODY_BYTES + 1)) + chunk(b""))
        assert b" 413 " in answer(connection)
