"""The current call: id and network address of the request or job being handled, for the audit log and the logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class _CallContext:
    request_id: str = ""
    address: str | None = None
    by_request: bool = False


_NO_CALL = _CallContext()
_call: ContextVar[_CallContext] = ContextVar("call", default=_NO_CALL)


def request_id() -> str:
    """The id of the request or job in hand, or the empty string outside both."""
    return _call.get().request_id


def address() -> str | None:
    """The network address that the request in hand came from; None in the background, or where it is not known."""
    return _call.get().address


def in_request() -> bool:
    """Whether somebody outside asked for this; False where the program works by itself."""
    return _call.get().by_request


@contextmanager
def call_context(*, request_id: str, address: str | None = None, by_request: bool = False) -> Iterator[None]:
    """Everything inside is done on behalf of this request (`by_request`), or of this job of the program itself."""
    token = _call.set(_CallContext(request_id, address, by_request))
    try:
        yield
    finally:
        _call.reset(token)
