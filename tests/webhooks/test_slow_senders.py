"""Bodies that come slowly, in part or without an end, over real connections to the real server."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backoffice.webhooks import slow_senders
from stack.processes import free_port
from tests.sandbox_process import ROOT
from tests.webhooks.steps import ADDRESS, SECRET

PATIENCE = 120  # seconds


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where the product's own server answers, with one thread. It has no tables: nothing here gets as far."""
    number, folder = free_port(), tmp_path_factory.mktemp("server")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    own = {"COUNTERSIGN_DATA_DIR": str(folder), "COUNTERSIGN_WEBHOOK_SECRET": SECRET, "PYTHONPATH": str(ROOT)}
    serve = ("-m", "gunicorn", "backoffice.wsgi", "--worker-class", "gthread", "--threads", "1")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, *serve, "--bind", f"127.0.0.1:{number}"],
            cwd=ROOT,
            env={**inherited, **own, "DJANGO_SETTINGS_MODULE": "backoffice.settings"},
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
        time.sleep(0.05)  # between two looks at a condition with a deadline
    raise AssertionError(log.read_text())


def begun(port: int, length: int) -> socket.socket:
    """A connection on which a body of so many bytes was announced, and none sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    head = f"POST {ADDRESS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def answer(connection: socket.socket) -> bytes:
    """What comes back until the other end is closed; nothing if it was hung up on."""
    said = b""
    try:
        while piece := connection.recv(4096):
            said += piece
            if b"\r\n\r\n" in said:
                break
    except ConnectionResetError:
        return b""
    return said


def test_who_dribbles_is_hung_up_on_and_the_thread_is_free_again(port: int) -> None:
    began = time.monotonic()
    with begun(port, 1000) as slow:
        slow.settimeout(0.2)
        while not is_hung_up_on(slow):
            assert time.monotonic() - began < PATIENCE
        assert time.monotonic() - began > slow_senders.WITHIN - 0.5
        with begun(port, 0) as next_one:
            assert b"HTTP/1.1 " in answer(next_one)


def is_hung_up_on(connection: socket.socket) -> bool:
    """Whether the other end is gone, after one byte more of the body and a moment."""
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_who_ends_in_the_middle_of_a_body_is_refused(port: int) -> None:
    with begun(port, 1000) as connection:
        connection.sendall(b'{"event":')
        connection.shutdown(socket.SHUT_WR)
        assert b" 400 " in answer(connection)


def test_a_body_that_is_too_long_is_refused_before_it_comes(port: int) -> None:
    with begun(port, 5_000_000) as connection:
        assert b" 413 " in answer(connection)


def test_only_those_whose_time_is_over_are_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(slow_senders, "monotonic", lambda: now[0])
    gone: list[str] = []
    with slow_senders.hurried(lambda: gone.append("first")):
        now[0] += slow_senders.WITHIN - 1
        with slow_senders.hurried(lambda: gone.append("second")):
            now[0] += 2
            slow_senders.hang_up_on_late()
            assert gone == ["first"]
    slow_senders.hang_up_on_late()
    assert gone == ["first"]
