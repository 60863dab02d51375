"""A server of raw sockets that misbehaves exactly as scripted, and remembers every request that reached it."""

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

READ_SIZE = 65_536


@dataclass(frozen=True)
class Request:
    """One request as it stood on the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket, stub: "Stub") -> None:
        self.sock = sock
        self.stub = stub
        self._pending = b""

    def has_more(self) -> bool:
        """Wait for the next request on a kept connection; False when the client has gone."""
        if not self._pending:
            self._pending = self.sock.recv(READ_SIZE)
        return bool(self._pending)

    def read_request(self) -> Request:
        head = self._until_head()
        line, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        while len(self._pending) < length:
            self._receive()
        body, self._pending = self._pending[:length], self._pending[length:]
        request = Request(method, target, headers, body)
        self.stub.requests.append(request)
        return request

    def read_head(self) -> None:
        self._until_head()

    def reset(self) -> None:
        """Cut the connection hard: the client sees a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def hold(self) -> None:
        """Keep the connection open and silent until the client gives up."""
        while self.sock.recv(READ_SIZE):
            pass

    def _until_head(self) -> bytes:
        while b"\r\n\r\n" not in self._pending:
            self._receive()
        head, self._pending = self._pending.split(b"\r\n\r\n", 1)
        return head

    def _receive(self) -> None:
        more = self.sock.recv(READ_SIZE)
        if not more:
            raise ConnectionError("the client has gone")
        self._pending += more


def wait_for(condition: Callable[[], bool], within: float = 120) -> bool:
    """Whether it came true before the deadline."""
    began, pause = time.monotonic(), threading.Event()
    while not condition() and time.monotonic() - began < within:
        pause.wait(0.01)
    return condition()


#: Handles one request of a connection; says whether the connection stays open for another.
Behaviour = Callable[[Peer], bool]


class Stub:
    """Serves on a free port of this machine. Each request meets the next behaviour; the last one repeats."""

    def __init__(self, *behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.stopping = threading.Event()
        self._behaviours = list(behaviours)
        self._tls = tls
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v2"

    def heard(self, number: int) -> list[Request]:
        """Every request, once so many are read: whoever gives up may be done sooner than the server has read."""
        assert wait_for(lambda: len(self.requests) >= number)
        return self.requests

    def has_accepted(self) -> bool:
        """Wait for a connection: whoever is asked in the middle of a call knows that its connection is ready."""
        return wait_for(lambda: self.connections > 0)

    def ended(self, received: list[bytes]) -> bytes:
        """What `keeping` kept of its only connection, once the client has gone."""
        assert wait_for(lambda: b"" in received)
        return b"".join(received)

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=60)
            assert not thread.is_alive()

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(sock)
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ConnectionError, ssl.SSLError), contextlib.closing(sock):
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
            with contextlib.closing(sock):
                peer = Peer(sock, self)
                while self._next()(peer) and peer.has_more():
                    pass

    def _next(self) -> Behaviour:
        with self._lock:
            return self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]


def message(
    status: int = 200, body: object = b"", headers: tuple[str, ...] = (), length: int | None = None
) -> bytes:
    """Write an HTTP answer out. A body that is not bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = (
        f"HTTP/1.1 {status} Stub",
        "Content-Type: application/json",
        f"Content-Length: {len(raw) if length is None else length}",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


def answer(
    status: int = 200, body: object = b"", headers: tuple[str, ...] = (), length: int | None = None
) -> Behaviour:
    """Answer as scripted, and keep the connection unless the promised length was a lie."""

    def behave(peer: Peer) -> bool:
        peer.read_request()
        peer.sock.sendall(message(status, body, headers, length))
        return length is None

    return behave


def raw(text: bytes) -> Behaviour:
    """Answer with exactly these bytes, and close."""

    def behave(peer: Peer) -> bool:
        peer.read_request()
        peer.sock.sendall(text)
        return False

    return behave


def keeping(received: list[bytes]) -> Behaviour:
    """Answer nothing and keep whatever comes, to an empty piece when the client has gone."""

    def behave(peer: Peer) -> bool:
        while not received or received[-1]:
            received.append(peer.sock.recv(READ_SIZE))
        return False

    return behave


def reset_after_accept(peer: Peer) -> bool:
    """Take the connection, then cut it without reading a byte of what arrives on it.

    It waits for the first byte: a cut that comes sooner may fail the connecting itself, which proves more.
    """
    peer.sock.recv(1, socket.MSG_PEEK)
    peer.reset()
    return False


def reset_after_head(peer: Peer) -> bool:
    peer.read_head()
    peer.reset()
    return False


def reset_after_request(peer: Peer) -> bool:
    peer.read_request()
    peer.reset()
    return False


def reset_in_answer(peer: Peer) -> bool:
    peer.read_request()
    peer.sock.sendall(message(200, b'{"data": {', length=1000))
    peer.reset()
    return False


def close_after_request(peer: Peer) -> bool:
    peer.read_request()
    return False


def silent(peer: Peer) -> bool:
    """Take the request and never answer."""
    peer.read_request()
    peer.hold()
    return False


def silent_in_head(peer: Peer) -> bool:
    peer.read_request()
    peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-")
    peer.hold()
    return False


def silent_in_body(peer: Peer) -> bool:
    peer.read_request()
    peer.sock.sendall(message(200, b'{"data": {', length=1000))
    peer.hold()
    return False


def drip(text: bytes, every: float = 0.02) -> Behaviour:
    """Answer one byte at a time, so that no single wait is ever long."""

    def behave(peer: Peer) -> bool:
        peer.read_request()
        for byte in text:
            peer.sock.sendall(bytes([byte]))
            if peer.stub.stopping.wait(every):
                break
        return False

    return behave
