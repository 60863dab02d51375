"""In-memory replacement for a socket below urllib3. Everything above it is real."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class ReceivedCall:
    """One request, parsed from its bytes."""

    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class RawAnswer:
    """The response: these bytes and then the end of the stream, or an error instead of the end."""

    sent: bytes
    then: type[OSError] | None = None


class _Stream(io.RawIOBase):
    """Returns the bytes of a response to its reader."""

    def __init__(self, answer: RawAnswer) -> None:
        self._rest = io.BytesIO(answer.sent)
        self._then = answer.then

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        number = self._rest.readinto(buffer)
        if number == 0 and self._then is not None:
            raise self._then("as the simulation wants it")
        return number


class InMemoryLine:
    """The part of a socket that http.client and urllib3 use. It serves one request, when its response is
    read.
    """

    def __init__(self, serve: Callable[[ReceivedCall], RawAnswer]) -> None:
        self._serve = serve
        self._sent = bytearray()
        self._timeout: float | None = None

    def sendall(self, data: bytes) -> None:
        self._sent += data

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Stream(self._serve(_read(bytes(self._sent)))))

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def close(self) -> None:
        """Nothing to close."""


@contextmanager
def leading_to(connect: Callable[[], InMemoryLine]) -> Iterator[None]:
    """Within the block, every connection that urllib3 opens is one of these. `connect` may raise OSError."""

    def create_connection(*_address: object, **_options: object) -> InMemoryLine:
        return connect()

    with mock.patch("urllib3.util.connection.create_connection", create_connection):
        yield


def answer(status: int, date: str, body: str) -> bytes:
    """A complete response, after which the connection is closed."""
    encoded = body.encode()
    head = (
        f"HTTP/1.1 {status} Answer\r\nDate: {date}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(encoded)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + encoded


def _read(request: bytes) -> ReceivedCall:
    head, _, body = request.partition(b"\r\n\r\n")
    method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
    parts = urlsplit(target)
    return ReceivedCall(method, parts.path, dict(parse_qsl(parts.query)), json.loads(body) if body else {})
