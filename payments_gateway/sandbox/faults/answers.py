"""An answer as bytes on the wire, and the two ways in which a connection ends."""

import errno
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from typing import NoReturn

_SENDING_SECONDS = 20
_GONE = (errno.ECONNRESET, "a fault has ended the connection")


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: status with its phrase, headers, body."""

    status: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    def raw(self, cut_at: int | None = None) -> bytes:
        """The bytes of the answer, as the last one on its connection; cut after that many bytes of the body."""
        fixed = (("Server", "gunicorn"), ("Date", formatdate(usegmt=True)), ("Connection", "close"))
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in (*fixed, *self.headers))]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body[:cut_at]


def send_and_hang_up(connection: socket.socket, data: bytes, *, reset: bool) -> NoReturn:
    """Send these bytes and nothing else, and end the connection."""
    connection.settimeout(_SENDING_SECONDS)
    with suppress(OSError):  # the client has gone first, or does not read
        connection.sendall(data)
    hang_up(connection, reset=reset)


def hang_up(connection: socket.socket, *, reset: bool) -> NoReturn:
    """End the connection at once: with RST, or with FIN if nothing that arrived is unread.

    Raises ConnectionResetError, which gunicorn takes for a client that has gone: it writes nothing and closes. The
    descriptor goes on as an unconnected socket for it to close, because it would miscount one that is closed already.
    """
    with suppress(OSError), socket.socket(connection.family, connection.type) as unconnected:
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.dup2(unconnected.fileno(), connection.fileno(), inheritable=False)
    raise ConnectionResetError(*_GONE)
