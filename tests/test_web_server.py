"""The web server over real connections: slow, half-open and endless ones delay nobody and end."""

import http.client
import inspect
import logging
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from selectors import EVENT_WRITE
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.forms import CharField
from django.urls import URLPattern, URLResolver, get_resolver
from gunicorn.config import Config
from waitress.channel import HTTPChannel

from backoffice import web_server
from backoffice.governance.policy_recipients import ListsForm
from backoffice.policies.document import PolicyDocument, RecipientList

PATIENCE = 20.0  # seconds
UPLOADS = "/operations/batches/files/"
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
    thread = threading.Thread(target=worker.run, name=f"loop at {listener.getsockname()[1]}")
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


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: "
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"
HALF_A_CHUNK = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf"


@pytest.mark.parametrize("begun", [b"", HALF_A_HEAD, HALF_A_BODY, HALF_A_CHUNK])
def test_slow_connections_keep_no_thread(begun: bytes) -> None:
    with serving(hello) as port, ExitStack() as slow:
        for _ in range(200):
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
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 2 * PATIENCE)  # not what closes the oldest
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
        ("/", web_server.MAX_FORM_BYTES + 1),
        ("/account/sign-in/", web_server.MAX_FORM_BYTES + 1),
        (UPLOADS, web_server.MAX_BODY_BYTES + 1),
        (f"{UPLOADS}more/", web_server.MAX_FORM_BYTES + 1),
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


def head_of(path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n".encode()
    )


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("/hooks/secret/", web_server.MAX_DELIVERY_BYTES),
        ("/", web_server.MAX_FORM_BYTES),
        (UPLOADS, web_server.MAX_BODY_BYTES),
    ],
)
def test_the_largest_body_is_accepted(path: str, length: int) -> None:
    with serving(hello) as port, connected(port, head_of(path, length) + b"x" * length) as request:
        assert ended(request).endswith(b"hello")


def _takes_files(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, bool]]:
    """An address of every view, and whether the view reads files."""
    for pattern in patterns:
        route = prefix + re.sub(r"<uuid:\w+>", str(UUID(int=1)), str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _takes_files(pattern.url_patterns, route)
        elif callable(pattern.callback):
            code = getattr(inspect.unwrap(pattern.callback), "__code__", None)
            yield route, code is not None and "FILES" in code.co_names


def test_a_long_body_is_accepted_where_a_view_takes_files_and_nowhere_else() -> None:
    views = list(_takes_files(get_resolver().url_patterns, "/"))
    assert sum(takes_files for _path, takes_files in views) == 3
    long = {path for path, _takes in views if web_server._longest_body(path) == web_server.MAX_BODY_BYTES}
    assert long == {path for path, takes_files in views if takes_files}


def test_the_longest_form_is_shorter_than_the_limit() -> None:
    lists = tuple(RecipientList(name=f"List {number}", keys=()) for number in range(3))
    fields = ListsForm(document=PolicyDocument(lists=lists)).fields
    longest = sum(field.max_length or 0 for field in fields.values() if isinstance(field, CharField))
    assert longest * len("%2C") + 10_000 < web_server.MAX_FORM_BYTES


def test_long_bodies_are_refused_while_a_process_holds_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MAX_HELD_BYTES", 1_000_000)
    with serving(hello) as port:
        with connected(port, head_of(UPLOADS, 900_001) + b"x" * 900_000):
            assert b"Retry-After: 30" in wait_for(port, b"HTTP/1.1 503 ", sent=0)
            short = head_of("/", 1_000) + b"x" * 1_000
            with connected(port, short) as form:
                assert ended(form).endswith(b"hello")
        wait_for(port, b"HTTP/1.1 200 ", sent=200_000)


def test_bodies_in_chunks_count_once_they_are_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MAX_HELD_BYTES", 400_000)
    called: list[object] = []
    with serving(lambda environ, start: called.append(environ)) as port:
        head = f"POST {UPLOADS} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        with connected(port, head) as upload:
            upload.sendall(b"80000\r\n" + b"x" * 0x80000)
            assert b" 503 " in ended(upload)
    assert called == []


def wait_for(port: int, answer: bytes, *, sent: int) -> bytes:
    """The answer to a body of 200,000 bytes, of which these are sent, once it is this one."""
    until, found = time.monotonic() + PATIENCE, b""
    while time.monotonic() < until:
        with connected(port, head_of("/", 200_000) + b"x" * sent) as connection:
            connection.settimeout(1)  # a body that is not refused is waited for
            with suppress(TimeoutError):
                found = ended(connection)
        if found.startswith(answer):
            return found
    raise AssertionError(found)


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


def test_what_a_client_sends_while_it_is_served_is_served_next() -> None:
    first = _Held(hello)
    with serving(first) as port, connected(port, GET) as connection:
        assert first.has_begun.wait(PATIENCE)
        connection.sendall(GET)
        time.sleep(0.2)  # in which the loop finds it and sets it aside
        first.may_end.set()
        received = b""
        while received.count(b"hello") < 2:
            received += connection.recv(65_536)
    assert received.count(b"HTTP/1.1 200 ") == 2


def test_a_request_does_not_ask_the_connections_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[web_server.Connection] = []

    def readable(connection: web_server.Connection) -> bool:
        asked.append(connection)
        return bool(HTTPChannel.readable(connection))

    with serving(hello) as port, ExitStack() as waiting:
        for _ in range(100):
            connection = waiting.enter_context(connected(port, GET))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        monkeypatch.setattr(web_server.Connection, "readable", readable, raising=False)
        assert status(port) == 200
        monkeypatch.undo()
    assert len(asked) < 20


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_client_that_does_not_wait_for_its_answer_does_not_keep_the_loop_busy(
    monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    first = _Held(hello)
    turns = _count_turns(monkeypatch)
    with serving(first) as port, connected(port, GET) as connection:
        assert first.has_begun.wait(PATIENCE)
        connection.sendall(GET)
        if is_closed:
            reset(connection)
        turns.clear()
        time.sleep(0.5)
        assert len(turns) < 200  # about ten that end by themselves; a busy loop makes thousands
        first.may_end.set()


def test_only_the_loop_closes_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that closed one meanwhile would end the process: the loop may be registering it."""
    closed_by: list[str] = []

    def close(connection: HTTPChannel) -> None:
        closed_by.append(threading.current_thread().name)
        original(connection)

    original = HTTPChannel.handle_close
    monkeypatch.setattr(HTTPChannel, "handle_close", close)
    first = _Held(hello)
    with serving(first) as port:
        with connected(port, GET + b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n") as connection:
            connection.sendall(b"Expect: 100-continue\r\n\r\n")
            assert first.has_begun.wait(PATIENCE)
            reset(connection)
        time.sleep(0.2)
        first.may_end.set()  # the thread finds the connection reset when it asks for the second body
        assert status(port) == 200
        loop = f"loop at {port}"
    assert closed_by
    assert set(closed_by) == {loop}


def test_a_connection_that_waits_to_write_is_looked_at_once_the_rest_is_written() -> None:
    seen: list[tuple[int, bool, bool]] = []

    def look(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        connection = web_server._served.connection
        before = connection.needs_loop
        connection.total_outbufs_len = 1  # which the loop finds, and the thread then writes
        awaited = connection.events_to_await()
        connection.total_outbufs_len = 0
        seen.append((awaited, before, connection.needs_loop))
        return hello(environ, start_response)

    with serving(look) as port:
        assert status(port) == 200
    assert seen == [(EVENT_WRITE, False, True)]


def test_a_process_that_ends_waits_without_being_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _Held(hello)
    turns = _count_turns(monkeypatch)
    with ExitStack() as stack, serving(first) as port:
        stack.enter_context(connected(port, GET))
        assert first.has_begun.wait(PATIENCE)
        threading.Timer(0.2, lambda: stack.enter_context(connected(port))).start()
        threading.Timer(0.7, first.may_end.set).start()
        turns.clear()
    assert len(turns) < 200


def test_an_answer_that_no_buffer_holds_arrives_whole() -> None:
    length = 30_000_000

    def long(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Length", str(length))])
        yield from [b"x" * 100_000] * (length // 100_000)

    with serving(long) as port, connected(port, GET) as connection:
        time.sleep(0.3)  # until the server has filled what the operating system takes
        received = 0
        while received < length:
            received += connection.recv(1_000_000).count(b"x")
        connection.sendall(GET)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"


def reset(connection: socket.socket) -> None:
    """Close it so that the server receives an error instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class _Held:
    """An application whose first request ends when the test allows it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.has_begun.set()
        self.may_end.wait(PATIENCE)
        return self._app(environ, start_response)


def _count_turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """An entry for each turn of the loop from now on."""
    turns: list[float] = []
    turn = web_server.Sockets.turn

    def counted(sockets: web_server.Sockets, timeout: float) -> None:
        turns.append(timeout)
        turn(sockets, timeout)

    monkeypatch.setattr(web_server.Sockets, "turn", counted)
    return turns
