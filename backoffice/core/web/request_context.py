"""Context of the current request or background job: its id and client address, for the audit log and the
logs, and for the logs also the user and the operation. Also closes the connection of a client that is too slow.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address

from django.http import HttpRequest


@dataclass(frozen=True)
class CallContext:
    """The cause of what runs now: an HTTP request (`by_request`) or a background job."""

    request_id: str = ""  # empty outside both
    address: str | None = None  # of the client; None in the background or if it is unknown
    by_request: bool = False
    user_id: int | None = None  # of the person who is signed in
    operation: str = ""  # the reference of the operation that is worked on


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


def set_user(user_id: int) -> None:
    """Name the signed-in person in the log lines of the current request."""
    _call.set(replace(_call.get(), user_id=user_id))


def set_operation(reference: str) -> None:
    """Name the operation in the log lines of the current request. In a job use `about_operation`."""
    if _call.get().by_request:
        _call.set(replace(_call.get(), operation=reference))


@contextmanager
def about_operation(reference: str) -> Iterator[None]:
    """Names the operation in the log lines of the block."""
    token = _call.set(replace(_call.get(), operation=reference))
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
