"""Who is calling: the id and address of the request in hand, for the audit log and the logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_address: ContextVar[str | None] = ContextVar("address", default=None)


def request_id() -> str:
    """The id of the request in hand, or the empty string outside one."""
    return _request_id.get()


def address() -> str | None:
    """The network address that the request in hand came from; None in the background."""
    return _address.get()


@contextmanager
def calling(*, request_id: str, address: str | None = None) -> Iterator[None]:
    """Everything inside is done on behalf of this request."""
    id_token, address_token = _request_id.set(request_id), _address.set(address)
    try:
        yield
    finally:
        _request_id.reset(id_token)
        _address.reset(address_token)
