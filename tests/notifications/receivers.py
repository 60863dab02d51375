"""What receives notifications on this machine: a mail and an HTTP server, which may fail, refuse or be slow."""

import threading
from asyncio.base_events import Server
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.http_server import http_server


@dataclass
class MailServer:
    """Keeps the mails it accepts. `answer` is its answer to each; with `is_silent` it never answers in time."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    answer: str = "250 OK"
    refused: set[str] = field(default_factory=set)  # recipients

    async def handle_RCPT(  # noqa: N802 - the names of aiosmtpd
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 No such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return self.answer

    def to(self, address: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if mail["To"] == address]


class AnyPortController(Controller):
    """Listens on a port that the system chooses."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server() -> Iterator[MailServer]:
    server = MailServer()
    controller = AnyPortController(server, hostname="127.0.0.1", port=0)
    controller.start()
    server.port = controller.port
    try:
        yield server
    finally:
        controller.stop()


@contextmanager
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and says nothing until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        yield server.server_address[1]  # it listens, and nobody serves


@dataclass
class HttpReceiver:
    """Keeps what is posted to it."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    location: str = ""  # of a redirect
    answer: bytes = b"ok"
    is_slow: bool = False  # sends a byte now and then, and never all
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.headers.append(dict(self.headers.items()))
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", str(len(receiver.answer) + receiver.is_slow))
            self.end_headers()
            try:
                self.wfile.write(receiver.answer)
            except OSError:
                return  # the client read no further
            if receiver.is_slow:
                receiver.released.wait(30)

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http_server(Handler) as port:
        receiver.port = port
        try:
            yield receiver
        finally:
            receiver.released.set()
