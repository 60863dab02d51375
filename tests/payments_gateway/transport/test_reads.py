"""A read: what is tried again, for how long, and what it ends in."""

import os
import time

import pytest
import requests

from payments_gateway import CredentialsError, RateLimitedError, ReadFailedError, RejectedError
from payments_gateway.connection import exchange, open_session
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Clock, Gateway, Serve
from tests.payments_gateway.situations import BROKEN, SLOW, UNREADABLE, closed_port, full_port

NOTHING = stub.answer(200, {"data": {"balances": []}})


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_reads_are_retried_while_the_provider_is_busy(
    serve: Serve, gateway: Gateway, clock: Clock, status: int
) -> None:
    server = serve(stub.answer(status), stub.answer(status), NOTHING)
    assert gateway(server.url).balances.list() == []
    assert len(server.requests) == 3
    assert clock.slept == [0.25, 0.5]


@pytest.mark.parametrize(
    "behaviour", [stub.reset_after_accept, stub.close_after_request, stub.reset_in_answer]
)
def test_an_interrupted_read_is_retried(serve: Serve, gateway: Gateway, behaviour: stub.Behaviour) -> None:
    server = serve(behaviour, NOTHING)
    assert gateway(server.url).balances.list() == []
    assert server.connections == 2


def test_a_read_is_tried_at_most_three_times(serve: Serve, gateway: Gateway, clock: Clock) -> None:
    server = serve(stub.answer(503, b"<html>"))
    with pytest.raises(ReadFailedError) as caught:
        gateway(server.url).balances.list()
    assert (caught.value.status, caught.value.body_excerpt) == (503, "<html>")
    assert len(server.requests) == 3
    assert len(clock.slept) == 2


def test_a_closed_port_is_tried_three_times(gateway: Gateway, clock: Clock) -> None:
    with closed_port() as port, pytest.raises(ReadFailedError) as caught:
        gateway(f"http://127.0.0.1:{port}/v2").balances.list()
    assert len(clock.slept) == 2
    # Not "Nothing was sent": beside an operation whose outcome is unknown, that would invite a second payment.
    assert str(caught.value) == "The provider could not be reached (no connection was possible)."


def test_an_unresponsive_port_is_retried(gateway: Gateway, clock: Clock) -> None:
    with full_port() as port, pytest.raises(ReadFailedError):
        gateway(f"http://127.0.0.1:{port}/v2", connect_timeout=0.05).balances.list()
    assert len(clock.slept) == 2


@pytest.mark.parametrize("status", [500, 501, 302, 204, 404])
def test_permanent_errors_are_not_retried(serve: Serve, gateway: Gateway, status: int) -> None:
    server = serve(stub.answer(status, b"", ("Location: /elsewhere",)))
    with pytest.raises(ReadFailedError) as caught:
        gateway(server.url).balances.list()
    assert caught.value.status == status
    assert len(server.requests) == 1


def test_retry_after_is_respected(serve: Serve, gateway: Gateway, clock: Clock) -> None:
    by_date = ("Date: Fri, 21 Nov 2025 10:00:00 GMT", "Retry-After: Fri, 21 Nov 2025 10:00:02 GMT")
    server = serve(stub.answer(429, b"", ("Retry-After: 1",)), stub.answer(503, b"", by_date), NOTHING)
    gateway(server.url).balances.list()
    assert clock.slept == [1.0, 2.0]


@pytest.mark.parametrize(
    "asked", ["Retry-After: soon", "Retry-After: -5", "Retry-After: 0", "Retry-After: ²"]
)
def test_an_invalid_retry_after_is_ignored(serve: Serve, gateway: Gateway, clock: Clock, asked: str) -> None:
    server = serve(stub.answer(503, b"", (asked.encode().decode("latin-1"),)), NOTHING)
    gateway(server.url).balances.list()
    assert clock.slept == [0.25]


def test_retries_do_not_exceed_the_deadline(serve: Serve, gateway: Gateway, clock: Clock) -> None:
    server = serve(stub.answer(429, {"message": "Slow down"}, ("Retry-After: 3600",)))
    with pytest.raises(RateLimitedError):
        gateway(server.url).balances.list()
    assert clock.slept == []
    assert len(server.requests) == 1


def test_no_retry_follows_a_pause_that_exceeded_the_deadline(
    serve: Serve, gateway: Gateway, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(stub.answer(503, b""), NOTHING)
    monkeypatch.setattr(clock, "sleep", lambda seconds: Clock.sleep(clock, seconds + 60))
    with pytest.raises(ReadFailedError, match="HTTP 503") as failed:
        gateway(server.url).balances.list()
    assert failed.value.status == 503  # the response says more than that the time ran out
    assert len(server.requests) == 1


@pytest.mark.parametrize("behaviour", SLOW.values(), ids=SLOW)
def test_a_slow_read_ends_at_the_deadline(serve: Serve, gateway: Gateway, behaviour: stub.Behaviour) -> None:
    started = time.monotonic()
    with pytest.raises(ReadFailedError):
        gateway(serve(behaviour).url, deadline=1.0, tries=1).balances.list()
    assert 1.0 <= time.monotonic() - started < 40


@pytest.mark.parametrize("behaviour", BROKEN.values(), ids=BROKEN)
def test_an_interrupted_read_is_a_failed_read(
    serve: Serve, gateway: Gateway, behaviour: stub.Behaviour
) -> None:
    with pytest.raises(ReadFailedError):
        gateway(serve(behaviour).url).balances.list()


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_response_is_a_failed_read(serve: Serve, gateway: Gateway, body: bytes) -> None:
    with pytest.raises(ReadFailedError):
        gateway(serve(stub.answer(200, body)).url).balances.list()


def test_a_refused_read_has_the_reason(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(401, {"success": False, "message": "Invalid API key"}))
    with pytest.raises(CredentialsError, match="Invalid API key"):
        gateway(server.url).balances.list()
    assert len(server.requests) == 1


def test_a_read_may_be_refused_with_a_success_status(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {"success": False, "message": "duration is unknown"}))
    with pytest.raises(RejectedError, match="duration is unknown"):
        gateway(server.url).transactions.page()


def test_reads_share_a_connection(serve: Serve, gateway: Gateway) -> None:
    server = serve(NOTHING)
    client = gateway(server.url)
    for _ in range(5):
        client.balances.list()
    assert (len(server.requests), server.connections) == (5, 1)


def test_a_closed_client_may_be_used_again(serve: Serve, gateway: Gateway) -> None:
    server = serve(NOTHING)
    client = gateway(server.url)
    client.balances.list()
    client.close()
    client.balances.list()
    assert server.connections == 2


def test_a_child_process_does_not_share_the_connections_of_its_parent(
    serve: Serve, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(NOTHING)
    client = gateway(server.url)
    client.balances.list()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    client.balances.list()
    assert server.connections == 2


def test_proxy_variables_are_ignored(serve: Serve, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(NOTHING)
    server = serve(NOTHING)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    gateway(server.url).balances.list()
    assert (proxy.connections, server.connections) == (0, 1)


def test_no_cookie_is_kept_or_sent(serve: Serve) -> None:
    server = serve(stub.answer(200, {}, ("Set-Cookie: session=1; Path=/",)))
    request = requests.Request("GET", server.url).prepare()
    with open_session(None) as session:
        for _ in range(2):
            exchange(session, request, connect=1, total=1, limit=1000)
        assert len(session.cookies) == 0
    assert server.requests[1].header("Cookie") is None
