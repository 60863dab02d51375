"""The places outside the database that checkpoints are written to: a file, a syslog server, an HTTPS address.

Each takes one line at a time. A file and an HTTPS address can be read back; syslog cannot.
"""

import logging
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, FileIO
from logging.handlers import SysLogHandler
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from backoffice.core import background
from backoffice.core.storage.files import sync_folder
from backoffice.core.web.formatting import code_sentence, system_error_template
from payments_gateway import GatewayError, NotSentError
from payments_gateway.config import is_loopback
from payments_gateway.connection import RawResponse, fetch

Result = TypeVar("Result")
TIMEOUT = 10.0  # seconds, for one exchange with a syslog server or an HTTPS address
NEWEST_BYTES = 65_536  # how much of a file's end is read back every minute
LARGEST_LINE = 4096
_GOODBYE = 2.0  # seconds that a syslog server may take to end a TLS connection
_PRIORITY = b"<110>"  # log audit, informational (RFC 5424, section 6.2.1)
LARGEST_ANSWER = 1_000_000
_CANNOT_BE_READ_BACK = {405, 501}
_WRITTEN_IN_PART = gettext_noop("only a part was written")
_NOT_A_FILE = gettext_noop("it is not a regular file")


class ProblemCode(TextChoices):
    """Why a checkpoint could not be written or read back. The label is the sentence, with its parameters in braces."""

    CANNOT_WRITE = "cannot_write", _("It cannot be written: {error}.")
    CANNOT_READ = "cannot_read", _("It cannot be read back: {error}.")
    NOT_REACHED = "not_reached", _("It cannot be reached.")
    NO_ANSWER = "no_answer", _("It did not respond completely and in time.")
    REFUSED = "refused", _("It responded to {method} with status {status}.")
    TOO_LARGE = "too_large", _("It sent back more than {limit} bytes.")


class DestinationError(Exception):
    """A checkpoint could not be written or read back. `detail` holds the code and its parameters."""

    def __init__(self, code: ProblemCode, **parameters: str | int) -> None:
        super().__init__(code.value)
        self.detail = {"code": code.value, **parameters}


class Destination(Protocol):
    """A place for checkpoints. Every method raises DestinationError; StopRequestedError while it waits for a server."""

    def append(self, line: bytes) -> None:
        """Add one line; it is stored when this returns, unless the place confirms nothing."""

    def newest_lines(self) -> list[bytes] | None:
        """The last lines, at least one if there is any; None if this place cannot be read back."""

    def all_lines(self) -> Iterator[bytes] | None:
        """Every line that can be read back, in order; None if none can."""


def destination_at(address: str) -> Destination:
    """The destination of a configured address. Raises ImproperlyConfigured, which says what is wrong."""
    try:
        parts = urlsplit(address)
        parse = _SCHEMES.get(parts.scheme)
        if parse is None or parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError
        return parse(parts)
    except ValueError:
        # The address is not repeated: it might contain a password.
        raise ImproperlyConfigured(
            "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS: each is file:///path, syslog+tls://host:port, "
            "syslog+tcp://host:port, syslog+udp://host:port, syslog+unix:///path or https://host/path, without "
            "user, password or query"
        ) from None


@dataclass(frozen=True)
class FileDestination:
    """A file that only grows, best on another volume.

    Its folder must exist, so that a volume that is not mounted is a problem and not a new file.
    """

    path: Path

    def append(self, line: bytes) -> None:
        try:
            with _opened(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
                size = os.fstat(file.fileno()).st_size
                # A line that a full disk cut short must not swallow this one.
                is_cut_short = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
                written = (b"\n" if is_cut_short else b"") + line + b"\n"
                if file.write(written) != len(written):
                    raise DestinationError(ProblemCode.CANNOT_WRITE, **_stored_text(_WRITTEN_IN_PART))
                os.fsync(file.fileno())
            if not size:
                sync_folder(self.path.parent)
        except OSError as exc:
            raise DestinationError(ProblemCode.CANNOT_WRITE, **stored_reason(exc)) from exc

    def newest_lines(self) -> list[bytes]:
        return [line for end in self._read(_end_of) for line in end.splitlines()]

    def all_lines(self) -> Iterator[bytes]:
        return self._read(_lines_of)

    def _read(self, contents: Callable[[FileIO], Iterator[bytes]]) -> Iterator[bytes]:
        """What this reads from the file; nothing if there is no file yet."""
        try:
            with _opened(self.path, os.O_RDONLY) as file:
                yield from contents(file)
        except OSError as exc:
            if isinstance(exc, FileNotFoundError) and self.path.parent.is_dir():
                return
            raise DestinationError(ProblemCode.CANNOT_READ, **stored_reason(exc)) from exc


def in_time(call: Callable[[], Result]) -> Result:
    """What the call returns or raises, within `TIMEOUT`: connecting, name servers and slow answers included.

    Runs in a thread of its own, which nothing waits for when the process ends. What it still does after this has
    returned has no effect here. Raises DestinationError after the time, and StopRequestedError as soon as the process
    has been asked to stop.
    """
    future: Future[Result] = Future()
    threading.Thread(target=_run, args=(future, call), daemon=True).start()
    until = time.monotonic() + TIMEOUT
    while not wait([future], timeout=0.1).done:
        background.raise_if_stop_requested()
        if time.monotonic() > until:
            raise DestinationError(ProblemCode.NO_ANSWER)
    return future.result()


def _run(future: Future[Result], call: Callable[[], Result]) -> None:
    try:
        future.set_result(call())
    except (GatewayError, OSError, UnicodeError) as exc:
        future.set_exception(exc)


@dataclass(frozen=True)
class SyslogDestination:
    """A syslog server, by RFC 5424. Over TCP each message ends with a line feed (RFC 6587, section 3.4.2).

    It confirms nothing: over UDP a message may be lost, and none can be read back.
    """

    server: str | tuple[str, int]  # the path of a socket, or host and port
    kind: socket.SocketKind | None = None

    def append(self, line: bytes) -> None:
        try:
            in_time(partial(self._emit, _record_of(line)))
        except (OSError, UnicodeError) as exc:  # UnicodeError: a host name that cannot be encoded
            raise DestinationError(ProblemCode.CANNOT_WRITE, **stored_reason(exc)) from exc

    def newest_lines(self) -> None:
        return None

    def all_lines(self) -> None:
        return None

    def _emit(self, record: logging.LogRecord) -> None:
        handler = _RaisingSysLogHandler(self.server, facility=SysLogHandler.LOG_SECURITY, socktype=self.kind)
        handler.setFormatter(_Rfc5424Formatter("\n" if self.kind == socket.SOCK_STREAM else ""))
        try:
            handler.emit(record)
        finally:
            handler.close()


def _record_of(line: bytes) -> logging.LogRecord:
    return logging.makeLogRecord({"levelno": logging.INFO, "levelname": "INFO", "msg": line.decode()})


class _RaisingSysLogHandler(SysLogHandler):
    """The standard library's handler with a time limit, which raises its errors instead of printing them."""

    append_nul = False

    def createSocket(self) -> None:  # noqa: N802 - overrides
        if self.socktype == socket.SOCK_STREAM and not isinstance(self.address, str):
            self.unixsocket = False
            self.socket = socket.create_connection(self.address, TIMEOUT)
            return
        super().createSocket()
        if self.socket is not None and self.socket.fileno() >= 0:
            self.socket.settimeout(TIMEOUT)

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 - overrides
        raise  # what `emit` is handling


class _Rfc5424Formatter(logging.Formatter):
    """`1 TIME HOST APP PROCESS MESSAGE-ID - MESSAGE`; the priority is written before it."""

    def __init__(self, end: str = "") -> None:
        super().__init__()
        self._end = end

    def format(self, record: logging.LogRecord) -> str:
        at = timezone.now().isoformat(timespec="milliseconds")
        host = socket.gethostname()[:255] or "-"
        return f"1 {at} {host} countersign {os.getpid()} checkpoint - {record.getMessage()}{self._end}"


@dataclass(frozen=True)
class TlsSyslogDestination:
    """A syslog server over TLS: each message has its length before it (RFC 5425, section 4.3).

    The certificate must be for the host name and of an authority that is trusted. It confirms nothing and cannot be
    read back.
    """

    host: str
    port: int

    def append(self, line: bytes) -> None:
        try:
            in_time(partial(self._send, _PRIORITY + _Rfc5424Formatter().format(_record_of(line)).encode()))
        except (OSError, UnicodeError) as exc:
            raise DestinationError(ProblemCode.CANNOT_WRITE, **stored_reason(exc)) from exc

    def newest_lines(self) -> None:
        return None

    def all_lines(self) -> None:
        return None

    def _send(self, message: bytes) -> None:
        context = ssl.create_default_context(cafile=settings.AUDIT_CHECKPOINT_CA_FILE or None)
        with (
            socket.create_connection((self.host, self.port), TIMEOUT) as connection,
            context.wrap_socket(connection, server_hostname=self.host) as channel,
        ):
            channel.sendall(b"%d %s" % (len(message), message))
            # A connection that is closed with something unread, such as session tickets, can lose what was sent.
            channel.settimeout(_GOODBYE)
            with suppress(OSError):
                channel.unwrap()


@dataclass(frozen=True)
class HttpsDestination:
    """An HTTPS address: POST adds one line, GET returns the newest lines, or 405 if it cannot be read back.

    Redirects are not followed. Plain HTTP is allowed on this machine only.
    """

    url: str

    def append(self, line: bytes) -> None:
        response = self._request("POST", body=line)
        if not 200 <= response.status < 300:
            raise DestinationError(ProblemCode.REFUSED, method="POST", status=response.status)

    def newest_lines(self) -> list[bytes] | None:
        response = self._request("GET")
        if response.status in _CANNOT_BE_READ_BACK:
            return None
        if not 200 <= response.status < 300:
            raise DestinationError(ProblemCode.REFUSED, method="GET", status=response.status)
        if not response.is_complete:
            raise DestinationError(ProblemCode.TOO_LARGE, limit=LARGEST_ANSWER)
        return response.body.splitlines()

    def all_lines(self) -> Iterator[bytes] | None:
        lines = self.newest_lines()
        return None if lines is None else iter(lines)

    def _request(self, method: str, body: bytes | None = None) -> RawResponse:
        token = settings.AUDIT_CHECKPOINT_TOKEN
        headers = {
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if body is not None else {}),
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        ca_file = settings.AUDIT_CHECKPOINT_CA_FILE or None
        try:
            return in_time(
                partial(
                    fetch,
                    method,
                    self.url,
                    headers=headers,
                    body=body,
                    ca_file=ca_file,
                    total=TIMEOUT,
                    limit=LARGEST_ANSWER,
                )
            )
        except NotSentError as exc:
            raise DestinationError(ProblemCode.NOT_REACHED) from exc
        except GatewayError as exc:
            raise DestinationError(ProblemCode.NO_ANSWER) from exc


def _file(parts: SplitResult) -> FileDestination:
    return FileDestination(Path(_absolute_path(parts)))


def _unix_syslog(parts: SplitResult) -> SyslogDestination:
    return SyslogDestination(_absolute_path(parts))


def _network_syslog(kind: socket.SocketKind, parts: SplitResult) -> SyslogDestination:
    if not parts.hostname or parts.port is None or parts.path:
        raise ValueError
    return SyslogDestination((parts.hostname, parts.port), kind)


def _tls_syslog(parts: SplitResult) -> TlsSyslogDestination:
    if not parts.hostname or parts.port is None or parts.path:
        raise ValueError
    return TlsSyslogDestination(parts.hostname, parts.port)


def _https(parts: SplitResult) -> HttpsDestination:
    if not parts.hostname or (parts.scheme == "http" and not is_loopback(parts.hostname)):
        raise ValueError
    return HttpsDestination(parts.geturl())


def _absolute_path(parts: SplitResult) -> str:
    if parts.netloc or not parts.path.startswith("/") or parts.path.endswith("/"):
        raise ValueError
    return parts.path


_SCHEMES: dict[str, Callable[[SplitResult], Destination]] = {
    "file": _file,
    "syslog+udp": partial(_network_syslog, socket.SOCK_DGRAM),
    "syslog+tcp": partial(_network_syslog, socket.SOCK_STREAM),
    "syslog+tls": _tls_syslog,
    "syslog+unix": _unix_syslog,
    "https": _https,
    "http": _https,
}


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[FileIO]:
    """The file, unbuffered; a new one is readable by its owner only.

    Raises OSError, also for a link, a folder, a device or a pipe.
    """
    safe = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # opening a pipe must not wait for its other end
    with FileIO(os.open(path, flags | safe, 0o600), "r+" if flags & os.O_RDWR else "r") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotAFileError("not a regular file")
        yield file


def _end_of(file: FileIO) -> Iterator[bytes]:
    """The last whole lines of the file, in one piece."""
    start = max(0, os.fstat(file.fileno()).st_size - NEWEST_BYTES)
    data = os.pread(file.fileno(), NEWEST_BYTES, start)
    yield data.partition(b"\n")[2] if start else data


def _lines_of(file: FileIO) -> Iterator[bytes]:
    """Every line. One that is longer than a checkpoint can be is split, so that memory stays bounded."""
    with BufferedReader(file) as buffered:
        yield from iter(lambda: buffered.readline(LARGEST_LINE), b"")


class NotAFileError(OSError):
    """The path is that of a device, a pipe or another thing that is no regular file."""


def stored_reason(exc: Exception) -> dict[str, str]:
    """The reason in words, for `with_error_sentence`."""
    return _stored_text(_NOT_A_FILE if isinstance(exc, NotAFileError) else system_error_template(exc))


def _stored_text(text: str) -> dict[str, str]:
    return {"error": text, "error_template": text}


def problem_sentence(problem: Mapping[str, Any]) -> str:
    """A stored problem in words; empty if there is none."""
    return code_sentence(ProblemCode, problem) if problem else ""
