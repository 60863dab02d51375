"""Places that receive checkpoints over a real network: an HTTP server and a syslog server over UDP, TCP or TLS."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.http_server import http_server


@dataclass
class HttpReceiver:
    """Keeps the lines that are posted to it, and returns them; or fails as the test says."""

    url: str = ""
    lines: list[bytes] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    post_status: int = 201
    get_status: int = 200
    location: str = ""  # of a redirect
    body: bytes | None = None  # what GET returns instead of the lines
    is_slow: bool = False  # sends a byte now and then, and never all
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            line = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.tokens.append(self.headers["Authorization"])
            if 200 <= receiver.post_status < 300:
                receiver.lines.append(line)
            self._answer(receiver.post_status, b"")

        def do_GET(self) -> None:
            body = b"\n".join(receiver.lines) if receiver.body is None else receiver.body
            self._answer(receiver.get_status, body)

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", str(len(body) + receiver.is_slow))
            self.end_headers()
            self.wfile.write(body)
            if receiver.is_slow:
                receiver.released.wait(30)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http_server(Handler) as port:
        receiver.url = f"http://127.0.0.1:{port}/checkpoints"
        try:
            yield receiver
        finally:
            receiver.released.set()


@contextmanager
def syslog_receiver(kind: socket.SocketKind) -> Iterator[tuple[int, socket.socket]]:
    """A socket of this machine that receives messages, and its port."""
    with socket.socket(socket.AF_INET, kind) as receiver:
        receiver.settimeout(10)
        receiver.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            receiver.listen()
        yield receiver.getsockname()[1], receiver


@contextmanager
def tls_receiver(certificate: Path, key: Path) -> Iterator[tuple[int, list[bytes]]]:
    """A port of this machine, and what each TLS connection to it sent; nothing for one that ended in the handshake."""
    listener = socket.create_server(("", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    received: list[bytes] = []

    def read() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    with context.wrap_socket(connection, server_side=True) as channel:
                        received.append(channel.makefile("rb").read())
                except OSError:
                    received.append(b"")

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield listener.getsockname()[1], received
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
