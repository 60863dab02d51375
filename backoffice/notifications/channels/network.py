"""Limits of what goes to an address that a person or the configuration names: which hosts and addresses, and how long.

Every connection is checked where it is made, after the name was resolved, so a redirect or a name that resolves to
another address the second time leads nowhere else.
"""

import ipaddress
import sys
import threading
from collections.abc import Callable, Collection, Iterator
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
    """A connection to an address that is not public, or to a host that is not listed, was refused."""


class TooSlowError(Exception):
    """The call did not end in time."""


_TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


def is_public(address: Address) -> bool:
    """Whether it is an address of the internet, and so is the IPv4 address that it may stand for."""
    return all(one.is_global and not one.is_multicast for one in (address, *_embedded(address)))


def _embedded(address: Address) -> Iterator[Address]:
    """The IPv4 addresses to which gateways translate this IPv6 address: mapped, 6to4, Teredo, NAT64 and compatible."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
    if any(address in network for network in _TRANSLATED):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def is_public_or_loopback(address: Address) -> bool:
    return is_public(address) or address.is_loopback


def is_listed(host: str, hosts: Collection[str]) -> bool:
    """Whether these hosts name this one: `slack.com` itself only, `*.zulipchat.com` every name below it."""
    name = host.lower().rstrip(".")
    return any(
        name == one or (one.startswith("*.") and name.endswith(one[1:])) for one in map(str.lower, hosts)
    )


_allowed: ContextVar[Callable[[Address], bool] | None] = ContextVar("allowed addresses", default=None)
_hosts: ContextVar[Collection[str] | None] = ContextVar("listed hosts", default=None)


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


@contextmanager
def names_of(hosts: Collection[str]) -> Iterator[None]:
    """Within the block, this thread resolves the names of these hosts only, so it connects to no other."""
    _watch_connections()
    token = _hosts.set(hosts)
    try:
        yield
    finally:
        _hosts.reset(token)


@cache
def _watch_connections() -> None:
    """Install the check in this process; a hook cannot be removed."""
    sys.addaudithook(_check_connection)


def _check_connection(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo" and (hosts := _hosts.get()) is not None:
        name = arguments[0]
        if not is_listed(name.decode() if isinstance(name, bytes) else str(name), hosts):
            raise AddressRefusedError("this host is not listed")
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
