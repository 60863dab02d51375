"""One request and whatever comes back, as bytes on a socket of its own."""

import json
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.sandbox_process import SandboxProcess

_SECONDS = 120


@dataclass(frozen=True)
class Received:
    """Every byte until the connection ended, and whether it ended by a reset."""

    data: bytes
    reset: bool

    @property
    def head(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    def header(self, name: str) -> str | None:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = [line.split(": ", 1) for line in lines]
        found = [value for key, value in pairs if key.lower() == name.lower()]
        assert len(found) <= 1, found
        return found[0] if found else None


def connected(process: SandboxProcess) -> socket.socket:
    address = urlsplit(process.address)
    return socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=_SECONDS)


def written(process: SandboxProcess, method: str, path: str, body: object = None) -> bytes:
    """The request as bytes, with credentials; the last one on its connection."""
    data = b"" if body is None else json.dumps(body).encode()
    headers = {**process.headers, "Host": urlsplit(process.address).netloc, "Connection": "close"}
    if body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def received(connection: socket.socket) -> Received:
    """Read until the other side ends the connection."""
    data = bytearray()
    try:
        while chunk := connection.recv(65536):
            data += chunk
    except ConnectionResetError:
        return Received(bytes(data), reset=True)
    return Received(bytes(data), reset=False)


def exchanged(process: SandboxProcess, method: str, path: str, body: object = None) -> Received:
    with connected(process) as connection:
        connection.sendall(written(process, method, path, body))
        return received(connection)
