"""A request as a fault sees it: which operation it asks for, what it contains, its connection."""

import io
import re
import socket
from typing import Any

from gunicorn.http.errors import ParseException

from payments_gateway.sandbox.wire.bodies import MAXIMUM_BYTES
from payments_gateway.sandbox.wire.operations import operation_at

_SERVICE = re.compile(r"/v[24]/")

BEYOND = ""
"""The operation of a request that the specification does not have."""

Environ = dict[str, Any]


class Incoming:
    """One request to the service."""

    def __init__(self, environ: Environ) -> None:
        self.environ = environ
        operation = operation_at(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        self.operation = operation.name if operation else BEYOND
        self.connection: socket.socket = environ["gunicorn.socket"]
        self._body: bytes | None = None

    def contains(self, text: str) -> bool:
        """Whether the target or the body contains this text, in UTF-8, as it stands on the wire."""
        wanted = text.encode("utf-8", "surrogatepass")
        return wanted in self.environ["RAW_URI"].encode("utf-8", "surrogateescape") or wanted in self.body()

    def body(self) -> bytes:
        """Read the body, up to a little more than the service accepts; the service will find it unread."""
        if self._body is None:
            stream = self.environ["wsgi.input"]
            try:
                self._body = stream.read(MAXIMUM_BYTES + 1)
            except (OSError, ParseException):
                self._body = b""  # the service meets the same error when it reads on
            self.environ["wsgi.input"] = io.BufferedReader(_Reread(self._body, stream))
        return self._body


class _Reread(io.RawIOBase):
    """A stream from its beginning again."""

    def __init__(self, begun: bytes, rest: Any) -> None:
        self._begun = io.BytesIO(begun)
        self._rest = rest

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from what was read before, then from the rest."""
        data = self._begun.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def is_to_the_service(environ: Environ) -> bool:
    """Whether the request goes to the service rather than to what the simulation adds to it."""
    return _SERVICE.match(environ["PATH_INFO"]) is not None
