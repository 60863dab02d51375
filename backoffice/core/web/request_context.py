"""Context of the current request or background job: its id and client address, for the audit log and the
logs. Also closes the connection of a client that is too slow.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True)
class _CallContext:
    request_id: str = ""
    address: str | None = None
    by_request: bool = False


_NO_CALL = _CallContext()
_call: ContextVar[_CallContext] = ContextVar("call", default=_NO_CALL)


def request_id() -> str:
    """The id of the current request or job; empty outside both."""
    return _call.get().request_id


def address() -> str | None:
    """The client address of the current request; None in the background or if it is unknown."""
    return _call.get().address


def in_request() -> bool:
    """Whether an HTTP request is the cause; False for background work."""
    return _call.get().by_request


@contextmanager
def call_context(*, request_id: str, address: str | None = None, by_request: bool = False) -> Iterator[None]:
    """Sets the context within the block, for a request (`by_request`) or a background job."""
    token = _call.set(_CallContext(request_id, address, by_request))
    try:
        yield
    finally:
        _call.reset(token)


def close_connection(request: HttpRequest) -> None:
    """Close the client's connection, which frees the thread that waits for it. Test servers have none."""
    connection: socket.socket | None = request.META.get("gunicorn.socket")
    if connection is not None:
        with suppress(OSError):  # already closed
            connection.shutdown(socket.SHUT_RDWR)
