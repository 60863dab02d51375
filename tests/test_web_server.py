"""The web server over real connections: slow, half-open and endless ones delay nobody and end."""

import http.client
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config

from backoffice import web_server

PATIENCE = 20.0  # seconds
App = Callable[[dict[str, Any], Any], Any]


@contextmanager
def serving(app: App) -> Iterator[int]:
    """One process of the server with one thread, here in a thread; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = Config()
    config.set("threads", 1)
    config.set("graceful_timeout", 5)
    worker = web_server.BufferingWorker(
        0, os.getppid(), [SimpleNamespace(sock=listener)], None, 30, config, logging.getLogger("gunicorn")
    )
    worker.wsgi = app
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        worker.alive = False
        thread.join(PATIENCE)
        worker.tmp.close()
        listener.close()
        assert not thread.is_alive()


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "_LOOP_SECONDS", 0.05)


def status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def connected(port: int, begun: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(begun)
    return connection


def ended(connection: socket.socket) -> bytes:
    """What arrives until the server closes the connection."""
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass
    return received


HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: "
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"
HALF_A_CHUNK = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf"


@pytest.mark.parametrize("begun", [b"", HALF_A_HEAD, HALF_A_BODY, HALF_A_CHUNK])
def test_slow_connections_keep_no_thread(begun: bytes) -> None:
    with serving(hello) as port, ExitStack() as slow:
        for _ in range(50):
            slow.enter_context(connected(port, begun))
        assert status(port) == 200


@pytest.mark.parametrize("begun", [b"", HALF_A_HEAD])
def test_a_head_must_arrive_in_time(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.2)
    with serving(hello) as port, connected(port, begun) as slow:
        assert ended(slow) == b""


@pytest.mark.parametrize("begun", [HALF_A_BODY, HALF_A_CHUNK])
def test_a_body_must_arrive_in_time(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(web_server, "BODY_SECONDS", 0.2)
    with serving(hello) as port, connected(port, begun) as slow:
        assert ended(slow) == b""


def test_a_byte_now_and_then_does_not_extend_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.5)
    with serving(hello) as port, connected(port, HALF_A_HEAD) as slow:
        slow.settimeout(0.05)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                slow.sendall(b"a")
                if not slow.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() < until


def test_a_connection_that_was_used_is_kept_longer_than_a_proxy_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert web_server.KEEP_ALIVE_SECONDS > 120
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.1)
    with serving(hello) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/")
        connection.getresponse().read()
        used = connection.sock
        with connected(port) as unused:
            assert ended(unused) == b""  # so more than the time for a head has passed
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"hello"
        assert connection.sock is used
        connection.close()


def test_a_new_connection_is_served_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MAX_CONNECTIONS", 20)
    with serving(hello) as port, ExitStack() as slow:
        oldest = slow.enter_context(connected(port, HALF_A_HEAD))
        for _ in range(60):
            slow.enter_context(connected(port, HALF_A_HEAD))
        assert status(port) == 200
        assert ended(oldest) == b""


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("/", 300_000_000),
        ("/", web_server.MAX_BODY_BYTES),
        ("/hooks/secret/", web_server.MAX_DELIVERY_BYTES + 1),
    ],
)
@pytest.mark.parametrize("expects", ["", "Expect: 100-continue\r\n"])
def test_a_body_that_is_too_long_is_refused_before_it_is_read(path: str, length: int, expects: str) -> None:
    called: list[object] = []
    with serving(lambda environ, start: called.append(environ)) as port:
        begun = f"POST {path} HTTP/1.1\r\nHost: a\r\n{expects}Content-Length: {length}\r\n\r\n"
        with connected(port, begun.encode()) as upload:
            assert ended(upload).startswith(b"HTTP/1.1 413 ")
    assert called == []


def test_a_body_in_chunks_is_refused_once_it_is_too_long() -> None:
    called: list[object] = []
    with serving(lambda environ, start: called.append(environ)) as port:
        head = b"POST /hooks/secret/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        with connected(port, head) as upload:
            upload.sendall(b"10001\r\n" + b"x" * 0x10001)
            assert b" 413 " in ended(upload)
    assert called == []


def test_the_largest_delivery_is_accepted() -> None:
    with serving(hello) as port:
        body = b"x" * web_server.MAX_DELIVERY_BYTES
        head = f"POST /hooks/secret/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        with connected(port, head.encode() + body) as delivery:
            assert ended(delivery).endswith(b"hello")


def test_closing_a_connection_frees_the_thread_that_waits_for_its_reader() -> None:
    hang_up: list[Callable[[], None]] = []
    is_stalled, is_closed = threading.Event(), threading.Event()

    def endless(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        hang_up.append(environ[web_server.CLOSE_CONNECTION])
        start_response("200 OK", [])
        try:
            while True:
                is_stalled.set()
                yield b"x" * 131_072
        finally:
            is_closed.set()

    with serving(endless) as port, connected(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
        assert is_stalled.wait(PATIENCE)
        assert not is_closed.wait(0.3)
        hang_up[0]()
        assert is_closed.wait(PATIENCE)


def test_a_request_that_is_being_served_is_finished_before_the_process_ends() -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def slow(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        has_begun.set()
        may_end.wait(PATIENCE)
        return hello(environ, start_response)

    with ExitStack() as stack:
        with serving(slow) as port:
            connection = stack.enter_context(
                connected(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            )
            assert has_begun.wait(PATIENCE)
            threading.Timer(0.3, may_end.set).start()
        assert ended(connection).endswith(b"hello")


def test_a_request_has_one_length() -> None:
    """With both headers the chunks count, so nothing of the body is taken for the next request."""
    seen: list[tuple[str, bytes]] = []

    def note(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append((environ["PATH_INFO"], environ["wsgi.input"].read()))
        return hello(environ, start_response)

    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    both = b"POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n"
    with serving(note) as port:
        body = f"{len(smuggled):x}\r\n".encode() + smuggled + b"\r\n0\r\n\r\n"
        with connected(port, both + b"Connection: close\r\n\r\n" + body) as connection:
            ended(connection)
        two = (
            b"POST /two HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd" + smuggled
        )
        with connected(port, two) as connection:
            refused = ended(connection)
    assert refused.startswith(b"HTTP/1.1 400 ")
    assert seen == [("/first", smuggled)]
