"""Context of the current request or background job: its id and client address, for the audit log and the
logs. Also closes the connection of a client that is too slow.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from django.http import HttpRequest


@dataclass(frozen=True)
class CallContext:
    """The cause of what runs now: an HTTP request (`by_request`) or a background job."""

    request_id: str = ""  # empty outside both
    address: str | None = None  # of the client; None in the background or if it is unknown
    by_request: bool = False


_call: ContextVar[CallContext] = ContextVar("call", default=CallContext())  # noqa: B039 - frozen


def current() -> CallContext:
    """The context of the current request or job."""
    return _call.get()


@contextmanager
def call_context(*, request_id: str, address: str | None = None, by_request: bool = False) -> Iterator[None]:
    """Sets the context within the block, for a request (`by_request`) or a background job."""
    token = _call.set(CallContext(request_id, address, by_request))
    try:
        yield
    finally:
        _call.reset(token)


_NETWORK_BITS = 64  # of an IPv6 address, which is what one customer has


def network_of(address: str | None) -> str:
    """What counts as one client: the address, or the network of an IPv6 address; empty if it is unknown."""
    if not address:
        return ""
    found = ip_address(address)
    if not isinstance(found, IPv6Address) or found.ipv4_mapped:
        return str(found)
    kept = int(found) >> (128 - _NETWORK_BITS) << (128 - _NETWORK_BITS)
    return f"{IPv6Address(kept)}/{_NETWORK_BITS}"


def close_connection(request: HttpRequest) -> None:
    """Close the client's connection, which frees the thread that waits for it. Test servers have none."""
    disconnect: Callable[[], None] | None = request.META.get("countersign.close_connection")
    if disconnect is not None:
        disconnect()
