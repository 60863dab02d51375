"""Command-line options and the HTTP server of the sandbox: gunicorn with one worker and threads.

Does not import Django: `manage.py sandbox` and the parent process need the options and the socket only.
"""

import argparse
import json
import socket
from collections.abc import Callable
from email.utils import format_datetime
from typing import Any

from gunicorn import util
from gunicorn.app.base import BaseApplication
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import ThreadWorker

from payments_gateway.profile.model import PROFILES
from payments_gateway.sandbox import clock

_YEAR_OF_SECONDS = 365 * 24 * 60 * 60


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options, with their defaults."""
    parser.add_argument("--port", type=_port, default=8001, help="0 takes any free port (default: 8001)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--database", default="var/sandbox.sqlite3", help="database file, made when missing")
    parser.add_argument(
        "--profile", choices=list(PROFILES), default="specification", help="whose requests and answers it has"
    )
    parser.add_argument("--seed", type=int, default=1, help="which history a new database is filled with")
    parser.add_argument("--transactions", type=_count, default=6_000, help="how long that history is")
    parser.add_argument(
        "--settle-after", type=_settle_seconds, default=8.0, help="seconds a withdrawal stays processing"
    )


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError("must be between 0 and 65535")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 3:
        raise argparse.ArgumentTypeError("must be at least 3: one opening deposit for each currency")
    return number


def _settle_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= _YEAR_OF_SECONDS:
        raise argparse.ArgumentTypeError("must be between 0 and a year")
    return seconds


class CannotListenError(Exception):
    """The address is not available, usually because another process listens on it."""


_STATUS_LINES = {
    LimitRequestLine: "414 URI Too Long",
    LimitRequestHeaders: "431 Request Header Fields Too Large",
}
_ERROR_BODY = json.dumps({"success": False, "message": "the request cannot be read"})


class SandboxWorker(ThreadWorker):
    """A threaded worker that rejects malformed requests with JSON instead of HTML."""

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Respond to a request that is not valid or too large HTTP; gunicorn handles anything else."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)  # type: ignore[no-untyped-call]  # gunicorn has none
            return
        head = (
            f"HTTP/1.1 {_STATUS_LINES.get(type(exc), '400 Bad Request')}",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {len(_ERROR_BODY)}",
        )
        answer = ("\r\n".join(head) + "\r\n\r\n" + _ERROR_BODY).encode()
        util.write_nonblock(client, answer)


_THREADS = 8


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free one.

    Raises CannotListenError when another process uses the port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as exc:
        listener.close()
        raise CannotListenError(f"Cannot listen on {host}:{port}: {exc.strerror}") from exc
    return listener


def serve(listener: socket.socket, factory: Callable[[], Any]) -> None:
    """Serve the application until SIGTERM or Ctrl-C; then exit with code 0."""
    SandboxServer(listener, factory).run()  # type: ignore[no-untyped-call]  # gunicorn has no annotations


class SandboxServer(BaseApplication):
    """Gunicorn with an application factory, which runs in the worker only so that the parent stays small."""

    cfg: Any

    def __init__(self, listener: socket.socket, factory: Callable[[], Any]) -> None:
        self._listener = listener
        self._factory = factory
        super().__init__()  # type: ignore[no-untyped-call]  # gunicorn has no annotations

    def load_config(self) -> None:
        """Pass the socket, log warnings only, stop within a second."""
        settings = {
            "bind": f"fd://{self._listener.fileno()}",
            "worker_class": "payments_gateway.sandbox.server.SandboxWorker",
            "workers": 1,
            "threads": _THREADS,
            "timeout": 120,  # the first start seeds the books inside the worker
            "graceful_timeout": 1,
            "keepalive": 30,
            "loglevel": "warning",
            "accesslog": None,
            "control_socket_disable": True,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Create the WSGI application in the worker, with the provider's clock in the Date header."""
        # Gunicorn sets the Date header itself and has no setting for it; ours would become a second one.
        util.http_date = lambda timestamp=None: format_datetime(clock.now(), usegmt=True)
        return self._factory()
