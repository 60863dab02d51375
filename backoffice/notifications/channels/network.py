"""Limits of what goes to an address that a person or the configuration names: which addresses, and how long.

Every connection is checked where it is made, after the name was resolved, so a redirect or a name that resolves to
another address the second time leads nowhere else.
"""

import ipaddress
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from django.conf import settings

from payments_gateway import GatewayError

Result = TypeVar("Result")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefusedError(OSError):
    """A connection to a private, link-local, loopback or other address that is not public was refused."""


class TooSlowError(Exception):
    """The call did not end in time."""


def is_public(address: Address) -> bool:
    """Whether it is an address of the internet."""
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_global and not (mapped or address).is_multicast


def is_public_or_loopback(address: Address) -> bool:
    return is_public(address) or address.is_loopback


_allowed: ContextVar[Callable[[Address], bool] | None] = ContextVar("allowed addresses", default=None)


@contextmanager
def connections_to(allowed: Callable[[Address], bool]) -> Iterator[None]:
    """Within the block, this thread connects to these addresses only; to any, if NOTIFY_PRIVATE_ADDRESSES is set."""
    if settings.NOTIFY_PRIVATE_ADDRESSES:
        yield
        return
    _watch_connections()
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


@cache
def _watch_connections() -> None:
    """Install the check in this process; a hook cannot be removed."""
    sys.addaudithook(_check_connection)


def _check_connection(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.connect" or (allowed := _allowed.get()) is None:
        return
    target = arguments[1]  # after the name was resolved; a text for a socket in the file system
    if not isinstance(target, tuple) or not allowed(ipaddress.ip_address(str(target[0]).partition("%")[0])):
        raise AddressRefusedError("this address is not allowed")


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """What the call returns or raises, in a thread of its own, which nothing waits for after this time.

    Raises TooSlowError. What the thread still does then has no effect here.
    """
    future: Future[Result] = Future()
    threading.Thread(target=_run, args=(future, call), daemon=True).start()
    try:
        return future.result(timeout=seconds)
    except TimeoutError as exc:
        if future.done():
            raise
        raise TooSlowError from exc


def _run(future: Future[Result], call: Callable[[], Result]) -> None:
    try:
        future.set_result(call())
    except (GatewayError, OSError, TypeError, ValueError) as exc:
        future.set_exception(exc)
