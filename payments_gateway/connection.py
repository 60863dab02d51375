"""One HTTP exchange within one deadline; the only place that maps errors of `requests` to ours.

It guarantees three things that `requests` does not:

* a failure before the connection is ready is distinguished from every later failure, so "nothing was sent" is proven;
* with the connection ready, and before each write, the caller's time limit is checked again;
* status line, headers and body share one deadline, so a server that sends a byte a second cannot block us.
"""

import http.client
import io
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

from payments_gateway.errors import GatewayError, NotSentError, OutcomeUnknownError
from payments_gateway.errors import gettext_noop as _

NO_TIME_LEFT = _("There was no time left for the request. Nothing was sent.")
TOO_LATE = _("The time limit for sending had passed. Nothing was sent.")
NOT_REACHED = _("The provider could not be reached ({why}). Nothing was sent.")
NO_RESPONSE = _("The provider's response did not arrive completely and in time ({why}).")
_CHUNK = 65_536
_CONNECTING_TOOK_TOO_LONG = _("connecting took too long")
_NO_CONNECTION = _("no connection was possible")
logger = logging.getLogger("payments_gateway")
_may_still_write: ContextVar[Callable[[], bool]] = ContextVar("in_time", default=lambda: True)

# Every error an exchange may fail with. Built-in ones are included because malformed header lines make the
# libraries raise them, and once bytes were sent every failure must become an unknown outcome.
_FAILURES = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
)


@dataclass(frozen=True, slots=True)
class RawResponse:
    """An HTTP response: its status, and its body up to the size limit. `retry_after` is in seconds."""

    status: int
    body: bytes = field(repr=False)
    is_complete: bool
    date: datetime | None
    retry_after: float


class NotConnectedError(NewConnectionError):
    """No byte of the request was sent: no connection, or no time left on it. `why` is the reason, for display."""

    def __init__(self, connection: HTTPConnection, why: str) -> None:
        super().__init__(connection, why)
        self.why = why


class SendWindowClosedError(NotConnectedError):
    """The connection was ready, but the time limit had passed, so no byte of the request was sent."""


@contextmanager
def write_only_while(in_time: Callable[[], bool]) -> Iterator[None]:
    """Within this context, nothing is written to a connection once `in_time` returns False.

    `in_time` is called when the connection (with TLS) is ready, immediately before each write, so a process
    that was stopped or a machine that was suspended in between cannot write late. False before the first
    write raises NotSentError; between two writes the request remains incomplete, which is treated as any
    broken exchange.
    """
    before = _may_still_write.set(in_time)
    try:
        yield
    finally:
        _may_still_write.reset(before)


class _TimedReader(io.RawIOBase):
    """Reads from a socket until one deadline, instead of restarting the timeout for each read."""

    def __init__(self, stream: io.RawIOBase, sock: socket.socket, until: float) -> None:
        self._stream = stream
        self._sock = sock
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the response did not arrive in time")
        self._sock.settimeout(left)
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """A response that must arrive completely within the socket's timeout, counted from when reading starts."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        timeout = sock.gettimeout()
        if timeout is not None:
            stream = self.fp.detach()
            self.fp = io.BufferedReader(_TimedReader(stream, sock, time.monotonic() + timeout))


class _PlainConnection(HTTPConnection):
    response_class = _TimedResponse
    has_written = False

    def connect(self) -> None:
        """Raises NotConnectedError for every failure, TLS and time limit included."""
        started = time.monotonic()
        try:
            super().connect()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as exc:
            logger.warning("No connection to %s (%s)", self.host, type(exc).__name__)
            raise NotConnectedError(self, _why_not_connected(exc)) from exc
        if self.timeout is not None and time.monotonic() - started > self.timeout:
            self.close()
            raise NotConnectedError(self, _CONNECTING_TOOK_TOO_LONG)

    def send(self, data: Any) -> None:
        """Write, unless the time limit has passed: then close the connection.

        Raises SendWindowClosedError if nothing was written on it yet, TimeoutError otherwise.
        """
        if self.sock is None:
            self.connect()
        if not _may_still_write.get()():
            self.close()
            raise TimeoutError if self.has_written else SendWindowClosedError(self, "too late")
        self.has_written = True
        super().send(data)


class _SecureConnection(_PlainConnection, HTTPSConnection):
    """The same connection over TLS."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Adapter(HTTPAdapter):
    """Uses the connection classes above; `requests` and urllib3 never retry."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """Never follow or prepare a redirect: it is a response like any other."""


def open_session(ca_file: str | None) -> requests.Session:
    """Return a session without environment settings (proxies, netrc), cookies or redirects."""
    session = _Session()
    session.trust_env = False
    session.verify = ca_file or True
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(pool_maxsize=16))
    return session


def exchange(
    session: requests.Session, request: requests.PreparedRequest, *, connect: float, total: float, limit: int
) -> RawResponse:
    """Send one request, once, and return the response received within `total` seconds, up to `limit` bytes.

    Raises NotSentError when it is proven that no byte of the request was sent, OutcomeUnknownError otherwise.
    """
    if total <= 0:
        raise NotSentError.of(NO_TIME_LEFT)
    # `requests` documents urllib3's Timeout for a total time; its type stubs omit it.
    timeout: Any = urllib3.Timeout(connect=min(connect, total), total=total)
    try:
        with session.send(request, stream=True, timeout=timeout, allow_redirects=False) as response:
            return _raw_response(response, limit)
    except _FAILURES as exc:
        raise _classify(exc) from strip_request_data(exc)


def fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    ca_file: str | None,
    total: float,
    limit: int,
) -> RawResponse:
    """One exchange over a connection of its own, for an address that is not the provider's. Raises as `exchange`."""
    with open_session(ca_file) as session:
        request = requests.Request(method, url, headers=dict(headers), data=body)
        return exchange(session, session.prepare_request(request), connect=total, total=total, limit=limit)


def _raw_response(response: requests.Response, limit: int) -> RawResponse:
    """Read the response, and of its body up to `limit` bytes."""
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > limit:
            break
    date = _parse_date(response.headers.get("Date"))
    retry_after = _parse_retry_after(response.headers.get("Retry-After", ""), date or datetime.now(UTC))
    return RawResponse(response.status_code, bytes(body[:limit]), len(body) <= limit, date, retry_after)


def _classify(exc: Exception) -> GatewayError:
    """Return the error for a failed exchange. Only a failure before the first write proves "not sent"."""
    reason = getattr(exc.args[0], "reason", None) if exc.args else None
    if isinstance(reason, SendWindowClosedError):
        return NotSentError.of(TOO_LATE)
    if isinstance(reason, NotConnectedError):
        return NotSentError.of(NOT_REACHED, why=reason.why)
    innermost = _innermost(exc)
    logger.warning("No complete response (%s)", type(innermost).__name__)
    return OutcomeUnknownError.of(NO_RESPONSE, why=_why_no_response(innermost))


def _innermost(exc: Exception) -> Exception:
    """Return the innermost error: urllib3's says more than the one of requests around it."""
    inner = next((arg for arg in exc.args if isinstance(arg, Exception)), None)
    return exc if inner is None else _innermost(inner)


def _why_not_connected(exc: Exception) -> str:
    match exc:
        case urllib3.exceptions.NameResolutionError():
            return _("the name of its server was not found")
        case ssl.SSLError() | urllib3.exceptions.SSLError():
            return _("its certificate or encryption was not accepted")
        case NewConnectionError():  # a subclass of ConnectTimeoutError
            return _NO_CONNECTION
        case urllib3.exceptions.ConnectTimeoutError() | TimeoutError():
            return _CONNECTING_TOOK_TOO_LONG
        case _:
            return _NO_CONNECTION


def _why_no_response(exc: Exception) -> str:
    match exc:
        case urllib3.exceptions.TimeoutError() | TimeoutError():
            return _("it took too long")
        case ConnectionError() | urllib3.exceptions.ProtocolError() | http.client.IncompleteRead():
            return _("the connection was closed")
        case _:
            return _("it is not valid HTTP")


def strip_request_data(exc: BaseException) -> BaseException:
    """Remove from an error and its causes everything that holds the request: frames, headers, body.

    A logger or an error page can then show its message only.
    """
    pending: list[object] = [exc]
    seen: set[int] = set()
    while pending:
        error = pending.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = None
        if isinstance(error, requests.RequestException):
            error.request = error.response = None
        pending += [error.__cause__, error.__context__, getattr(error, "reason", None), *error.args]
    return exc


# A date outside these cannot be true; near the end of the calendar, adding an hour to it would fail.
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def _parse_date(header: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(header or "")
    except (ValueError, OverflowError, TypeError, IndexError):  # all are raised for an invalid date
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment if _EARLIEST < moment < _LATEST else None


def _parse_retry_after(header: str, now: datetime) -> float:
    """Return the seconds of a Retry-After header: a number, or a date compared with the provider's clock."""
    seconds = header.strip()
    if seconds.isdecimal():
        return float(seconds)
    moment = _parse_date(header)
    return max(0.0, (moment - now).total_seconds()) if moment else 0.0
