"""Serves the simulation over HTTP: one gunicorn worker with threads, on a socket bound before anything else."""

import socket
from collections.abc import Callable
from email.utils import format_datetime
from typing import Any

from gunicorn import util
from gunicorn.app.base import BaseApplication

from payments_gateway.sandbox.wire.errors import CannotListenError

_THREADS = 8


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one. CannotListenError when another process has the port."""
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
    """Serve what the factory makes until SIGTERM or Ctrl-C; then leave with code 0."""
    Server(listener, factory).run()  # type: ignore[no-untyped-call]  # gunicorn has no annotations


class Server(BaseApplication):
    """Gunicorn around a factory of the WSGI application, which runs in the worker only and keeps the parent small."""

    cfg: Any

    def __init__(self, listener: socket.socket, factory: Callable[[], Any]) -> None:
        self._listener = listener
        self._factory = factory
        super().__init__()  # type: ignore[no-untyped-call]  # gunicorn has no annotations

    def load_config(self) -> None:
        """Hand over the socket; keep quiet; end at once when told to."""
        settings = {
            "bind": f"fd://{self._listener.fileno()}",
            "worker_class": "payments_gateway.sandbox.worker.Worker",
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
        """The WSGI application, made in the worker, where every answer is dated by the clock of the service."""
        # Imported here, in the worker: the clock needs Django, and the parent stays small.
        from payments_gateway.sandbox import clock

        # Gunicorn dates every answer itself, offers no setting for it, and would send a second Date beside ours.
        util.http_date = lambda timestamp=None: format_datetime(clock.now(), usegmt=True)
        return self._factory()
