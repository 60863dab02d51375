"""The web server: gunicorn's processes, and waitress inside each of them, which reads requests and writes answers
without a thread.

A thread serves a request only when all of it has arrived, and is free again before a slow client has read the
answer. So slow or half-open connections cost a socket each and delay nobody. Every wait for a client has a limit, here;
none needs a proxy. `gunicorn.conf.py` chooses this worker, and the logger.
"""

import copy
import logging.config
import os
import re
import resource
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

from django.conf import settings
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer, UnixWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import Error

HEAD_SECONDS = 10  # from the first byte of a connection, or of a request, to the end of its headers
BODY_SECONDS = 30  # from the end of the headers to the end of a body of this size:
BODY_BYTES_PER_SECOND = 20_000  # and a second more for each of these bytes
ANSWER_SECONDS = 120  # without a byte taken from an answer
# Longer than a proxy's: Caddy has 120, nginx 60; otherwise the proxy reports 502 now and then.
KEEP_ALIVE_SECONDS = 130
MAX_HEAD_BYTES = 32_768
# Twice the largest file that people may upload, which gets a message beside its field.
MAX_BODY_BYTES = 8_000_000
# The longest form, the lists of a policy: 100,000 characters, each of which may be sent as %xx.
MAX_FORM_BYTES = 320_000
MAX_DELIVERY_BYTES = 64 * 1024  # of a webhook
MAX_HELD_BYTES = 40_000_000
"""Of the bodies that one process holds, received in part or being served. Above it, bodies that are longer than a
delivery are refused. In memory or in temporary files, of which an upload being served has a second copy.
"""
RETRY_SECONDS = 30  # after which a client whose body was refused for lack of room may try again
MAX_CONNECTIONS = 2000  # of one process; a further one closes the oldest that has no whole request
CLOSE_CONNECTION = "countersign.close_connection"
"""Key of a function in the WSGI environment: close the connection of this request, from any thread."""

_PATH_OF_DELIVERIES = "/hooks/"
_PATHS_OF_UPLOADS = re.compile(
    r"/operations/batches/files/|/operations/[0-9a-f-]{36}/rows/retry/upload/|/settings/recipients/import/"
)
_LOOP_SECONDS = 1.0
_SPARE_DESCRIPTORS = 200  # for the database, files and the worker's own
_STREAM_BUFFER = 256 * 1024  # what is kept of a download before its reader has taken it


class _NoRoomError(Error):
    code, reason = 503, "Service Unavailable"

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        status, headers, body = super().to_response(ident)
        return status, [*headers, ("Retry-After", str(RETRY_SECONDS))], body


class _Parser(HTTPRequestParser):
    """Refuses a body by its declared length, before any of it is read, and a chunked one once it is too long.

    `held_bytes` counts those of all bodies that this process holds, this one included.
    """

    def __init__(self, adj: Adjustments, held_bytes: Callable[[], int]) -> None:
        super().__init__(adj)
        self._held_bytes = held_bytes

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        self.adj = _with_limit(self.adj, _longest_body(self.path))

    def received(self, data: bytes) -> int:
        is_begun = self.headers_finished
        consumed: int = super().received(data)
        expected = self.body_bytes_received if is_begun else self.content_length
        more = 0 if is_begun else expected
        is_long = expected > MAX_DELIVERY_BYTES
        if not self.error and is_long and self._held_bytes() + more > MAX_HELD_BYTES:
            self.error = _NoRoomError(f"Try again in {RETRY_SECONDS} seconds.")  # type: ignore[assignment]
            self.completed = True
        if self.error:
            self.expect_continue = False  # no invitation to send a body that is refused
        return consumed


class _Task(WSGITask):
    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[CLOSE_CONNECTION] = self.channel.disconnect
        return environ


_served = threading.local()
"""`connection`: which one the current thread serves. The loop's thread has none."""


class Connection(HTTPChannel):
    """One connection, with the times from which its limits count."""

    task_class = _Task
    waiting_since = 0.0  # for the rest of the current request
    has_been_used = False
    head_is_complete = False
    is_set_aside = False  # sent something that is not read before a thread has served what it sent earlier
    waits_to_write = False  # registered for writing, or about to be

    def parser_class(self, adj: Adjustments) -> _Parser:  # type: ignore[override]
        """The parser of a request. waitress calls this attribute as a class."""
        return _Parser(adj, self._held_by_all)

    def _held_by_all(self) -> int:
        connections = [one for one in list(self._map.values()) if isinstance(one, Connection)]
        return sum(one.held_bytes for one in connections)

    @property
    def held_bytes(self) -> int:
        """Of the bodies of requests that are arriving, waiting or being served."""
        requests = [*self.requests, self.request] if self.request is not None else list(self.requests)
        return sum(request.body_bytes_received for request in requests)

    def received(self, data: bytes) -> bool:
        begins = self.request is None
        going_on: bool = super().received(data)
        self.has_been_used = self.has_been_used or bool(self.requests)
        head_is_complete = self.request is not None and self.request.headers_finished
        if begins or head_is_complete != self.head_is_complete:
            self.waiting_since = time.time()
        self.head_is_complete = head_is_complete
        return going_on

    def service(self) -> None:
        """Serve the first request, in one of the threads."""
        _served.connection = self
        super().service()

    def set_aside_if_busy(self) -> bool:
        """Whether nothing can be read or written now. The thread that serves the connection then wakes the loop."""
        with self.requests_lock:  # under which that thread removes the request
            self.is_set_aside = not (self.readable() or self.writable())
        return self.is_set_aside

    def events_to_await(self) -> int:
        """What it is to be registered for. Reading is, too, while a thread serves it, which is seldom in vain."""
        self.waits_to_write = (
            True  # before looking: a thread that writes the rest meanwhile then wakes the loop
        )
        wanted = _wanted_events(self)
        self.waits_to_write = bool(wanted & EVENT_WRITE)
        return wanted or EVENT_READ

    @property
    def needs_loop(self) -> bool:
        """Whether the loop has to do something that it does not learn from the socket as it is registered."""
        return bool(
            self.is_set_aside
            or self.waits_to_write
            or self.total_outbufs_len
            or self.will_close
            or self.close_when_flushed
        )

    def handle_close(self) -> None:
        """Close the connection, and delete what was received of a body. Only the loop does: a thread has it done."""
        if hasattr(_served, "connection"):
            self.will_close = True
            return
        super().handle_close()
        unfinished, self.request = self.request, None
        if unfinished is not None:
            unfinished.close()

    @property
    def awaits_request(self) -> bool:
        """Whether no request is being served and no answer is being written."""
        return not self.requests and not self.total_outbufs_len

    def is_overdue(self, now: float) -> bool:
        """Whether the client has taken too long to send a request, to read an answer or to use the connection again."""
        if self.requests:
            return False  # a thread serves it; downloads have limits of their own
        if self.total_outbufs_len:
            return bool(now - self.last_activity > ANSWER_SECONDS)
        if self.request is not None:
            return now - self.waiting_since > self._time_for_request()
        allowed = KEEP_ALIVE_SECONDS if self.has_been_used else HEAD_SECONDS
        return bool(now - self.last_activity > allowed)

    def disconnect(self) -> None:
        """Close the connection, from any thread: the server's loop notices, and frees a thread that waits for it."""
        with suppress(OSError):  # already closed
            if self.socket is not None:
                self.socket.shutdown(socket.SHUT_RDWR)

    def _time_for_request(self) -> float:
        if self.request is None or not self.head_is_complete:
            return HEAD_SECONDS
        return BODY_SECONDS + int(self.request.content_length) / BODY_BYTES_PER_SECOND


class Sockets(dict[int, Any]):
    """The open sockets of one process, by descriptor: waitress's listeners, connections and pipes.

    Each stays registered with the operating system, so a turn of the loop takes as long as there is something to do.
    waitress's own loop asks every socket at every turn what it waits for, and is woken after every request.

    A connection also stays registered while a thread serves it. What a client sends meanwhile sets it aside.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector = DefaultSelector()
        self._woken_for: deque[Connection] = deque()

    def __setitem__(self, descriptor: int, one: Any) -> None:
        super().__setitem__(descriptor, one)
        self._selector.register(descriptor, EVENT_READ, one)

    def __delitem__(self, descriptor: int) -> None:
        super().__delitem__(descriptor)
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def turn(self, timeout: float) -> None:
        """Wait for at most so many seconds until something can be read or written, and do that."""
        for key, events in self._selector.select(timeout):
            if self.get(key.fd) is not key.data:
                continue  # closed in this turn; the descriptor may be that of another socket already
            if isinstance(key.data, Connection) and key.data.set_aside_if_busy():
                self._selector.unregister(key.fd)
                continue
            possible = events & _wanted_events(key.data)
            if possible & EVENT_READ:
                wasyncore.read(key.data)
            if possible & EVENT_WRITE:
                wasyncore.write(key.data)
            self.register(key.data)
        while self._woken_for:
            connection = self._woken_for.popleft()
            connection.is_set_aside = False
            self.register(connection)

    def register(self, one: Any) -> None:
        """Wait for what this socket needs now, if it is open. Only the loop's thread may call it."""
        descriptor = one._fileno
        if self.get(descriptor) is not one:
            return
        key = self._selector.get_map().get(descriptor)
        wanted = one.events_to_await() if isinstance(one, Connection) else _wanted_events(one)
        if key is None and wanted:
            self._selector.register(descriptor, wanted, one)
        elif key is not None and not wanted:
            self._selector.unregister(descriptor)
        elif key is not None and key.events != wanted:
            self._selector.modify(descriptor, wanted, one)

    def wake_for(self, connection: Connection) -> None:
        """Have the next turn register this connection again. Any thread may call it, and wakes the loop afterwards."""
        self._woken_for.append(connection)


def _wanted_events(one: Any) -> int:
    is_written = one.writable() and not one.accepting
    return (EVENT_READ if one.readable() else 0) | (EVENT_WRITE if is_written else 0)


class _Limits:
    """What both kinds of listening sockets do alike. A mix-in for waitress's servers."""

    channel_class = Connection
    active_channels: dict[int, Connection]
    _map: Any  # the `Sockets`

    def pull_trigger(self) -> None:
        """Wake the loop if it has to do something for the connection that the current thread serves."""
        if _served.connection.needs_loop:
            self._map.wake_for(_served.connection)
            super().pull_trigger()  # type: ignore[misc]

    def maintenance(self, now: float) -> None:
        """Nothing: `BufferingWorker` closes connections, between two turns of the loop."""

    def close_overdue(self) -> None:
        """Close what has waited too long, and the oldest of what waits if there are too many."""
        now = time.time()
        connections = list(self.active_channels.values())
        waiting = [one for one in connections if one.awaits_request]
        for connection in connections:
            if connection.is_overdue(now):
                connection.handle_close()
        surplus = len(self.active_channels) - _allowed_connections()
        if surplus > 0:
            oldest = sorted(waiting, key=lambda one: one.last_activity)
            for connection in oldest[:surplus]:
                connection.handle_close()

    @property
    def is_idle(self) -> bool:
        return all(one.awaits_request for one in self.active_channels.values())


class _TcpServer(_Limits, TcpWSGIServer):
    pass


class _UnixServer(_Limits, UnixWSGIServer):
    pass


class BufferingWorker(Worker):
    """A gunicorn process whose one loop reads from and writes to all clients; `threads` threads run the application."""

    def run(self) -> None:
        """Serve until the process is asked to stop; then finish what was received, within `graceful_timeout`."""
        if self.cfg.is_ssl:
            raise RuntimeError("This server speaks no TLS: a proxy in front of it does.")
        _raise_descriptor_limit()
        sockets = Sockets()
        threads = ThreadedTaskDispatcher()
        threads.set_thread_count(self.cfg.threads)
        servers = list(self._servers(sockets, threads))
        self._loop(sockets, servers)
        self._finish(sockets, servers)
        threads.shutdown(timeout=1)
        wasyncore.close_all(sockets)

    def _loop(self, sockets: Sockets, servers: list[Any]) -> None:
        checked_at, allowed = 0.0, _allowed_connections()
        while self.alive:
            sockets.turn(_LOOP_SECONDS)
            if time.monotonic() - checked_at < _LOOP_SECONDS and len(sockets) <= allowed:
                continue
            checked_at = time.monotonic()
            self.notify()
            if self.ppid != os.getppid():
                return
            for server in servers:
                server.close_overdue()
                sockets.register(server)

    def _finish(self, sockets: Sockets, servers: list[Any]) -> None:
        """Accept nothing more, and end once every request that has arrived is answered."""
        for server in servers:
            server.accepting = False
        until = time.monotonic() + self.cfg.graceful_timeout
        while time.monotonic() < until and not all(server.is_idle for server in servers):
            self.notify()
            sockets.turn(0.1)

    def _servers(self, sockets: Sockets, threads: ThreadedTaskDispatcher) -> Iterator[Any]:
        adjustments = _adjustments()
        for listener in self.sockets:
            found: socket.socket = listener.sock
            kind = _UnixServer if found.family == socket.AF_UNIX else _TcpServer
            yield kind(
                self.wsgi,
                sockets,
                _sock=found,
                dispatcher=threads,
                adj=adjustments,
                bind_socket=False,
                sockinfo=(found.family, found.type, found.proto, found.getsockname()),
            )


def _adjustments() -> Adjustments:
    """Waitress's options. Forwarded headers stay, because the application decides whether to trust them."""
    return Adjustments(
        ident=None,
        clear_untrusted_proxy_headers=False,
        connection_limit=MAX_CONNECTIONS * 2,  # ours closes the oldest, and accepts new ones
        max_request_header_size=MAX_HEAD_BYTES,
        max_request_body_size=MAX_BODY_BYTES,
        outbuf_high_watermark=_STREAM_BUFFER,
        outbuf_overflow=MAX_BODY_BYTES,  # answers never go through temporary files
        recv_bytes=65_536,
        log_socket_errors=False,
    )


def _longest_body(path: str) -> int:
    """Only a path that takes a file, or a delivery, needs another limit than that of forms."""
    if path.startswith(_PATH_OF_DELIVERIES):
        return MAX_DELIVERY_BYTES
    return MAX_BODY_BYTES if _PATHS_OF_UPLOADS.fullmatch(path) else MAX_FORM_BYTES


@lru_cache
def _with_limit(options: Adjustments, longest_body: int) -> Adjustments:
    changed = copy.copy(options)
    changed.max_request_body_size = longest_body + 1  # waitress refuses what reaches it
    return changed


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + _SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _allowed_connections() -> int:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft - _SPARE_DESCRIPTORS)
    )


class GunicornLogger(Logger):
    """Passes gunicorn's lines to the root logger. Its level remains gunicorn's `--log-level`.

    Its access log is off by default: the application writes one, without query strings (`RequestContextMiddleware`).
    """

    def setup(self, cfg: Config) -> None:
        Logger.setup(self, cfg)
        logging.config.dictConfig(settings.LOGGING)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.propagate = True
