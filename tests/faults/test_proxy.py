"""The proxy itself: if it did not cut where planned, the campaign would prove nothing."""

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.faults.harness.connection_cuts import AfterCut, Side
from tests.faults.harness.proxy import Proxy
from tests.payments_gateway import stub

ANSWER = stub.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


@pytest.fixture
def provider() -> Iterator[stub.Stub]:
    with stub.Stub(ANSWER) as running:
        yield running


@pytest.fixture
def proxy(provider: stub.Stub) -> Iterator[Proxy]:
    with Proxy(int(provider.url.rpartition(":")[2].partition("/")[0])) as running:
        yield running


def say(proxy: Proxy, text: bytes = b'POST /pay HTTP/1.1\r\nContent-Length: 8\r\n\r\n{"a": 1}') -> bytes:
    """The response, up to the end of the connection."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
        client.sendall(text)
        with suppress(OSError):  # already reset; reading reports it
            client.shutdown(socket.SHUT_WR)
        heard = b""
        while data := client.recv(1000):
            heard += data
    return heard


def test_everything_passes_without_faults(proxy: Proxy) -> None:
    assert say(proxy).endswith(b"done")


def test_the_proxy_cuts_a_response_at_the_byte(proxy: Proxy) -> None:
    cut = proxy.cut(b"POST /pay", side=Side.ANSWER, after=10, then=AfterCut.CLOSE)
    assert say(proxy) == b"HTTP/1.1 2"
    assert cut.reached.is_set()
    assert say(proxy).endswith(b"done")


def test_the_proxy_cuts_a_request_at_the_byte(proxy: Proxy, provider: stub.Stub) -> None:
    proxy.cut(b"POST /pay", b"\r\n\r\n", after=6, then=AfterCut.RESET)
    with pytest.raises(ConnectionResetError):
        say(proxy)
    assert provider.requests == []


def test_the_proxy_passes_other_requests(proxy: Proxy) -> None:
    cut = proxy.cut(b"POST /other")
    assert say(proxy).endswith(b"done")
    assert not cut.reached.is_set()


def test_a_stalled_connection_continues_or_breaks(proxy: Proxy) -> None:
    stalled = proxy.cut(b"POST /pay", b"}", after=1, then=AfterCut.STALL)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
        client.sendall(b'POST /pay HTTP/1.1\r\nContent-Length: 8\r\n\r\n{"a": 1}')
        stalled.wait()
        stalled.go_on()
        assert client.recv(8) == b"HTTP/1.1"
    torn = proxy.cut(b"POST /pay", then=AfterCut.STALL)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
        client.sendall(b"POST /pay HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        torn.wait()
        torn.tear()
        with pytest.raises(ConnectionResetError):
            client.recv(8)


def test_connections_are_refused_while_the_proxy_is_down(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
        client.sendall(b"POST")
        with proxy.away():
            with pytest.raises(ConnectionResetError):
                client.recv(1)
            with pytest.raises(ConnectionRefusedError):
                say(proxy)
    assert say(proxy).endswith(b"done")
