"""A money call that cannot be made, or comes too late: proven that nothing was sent, and nothing was."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from payments_gateway import (
    NotSentError,
    OutcomeUnknownError,
    PaymentsGateway,
    ProviderProfile,
    write_only_while,
)
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.situations import ACCEPTED, WITHDRAWAL, closed_port, full_port, refused


def test_a_refused_connection_proves_that_nothing_was_sent(gateway: Gateway) -> None:
    with closed_port() as port:
        error = refused(gateway(f"http://127.0.0.1:{port}/v2"))
    assert type(error) is NotSentError
    assert error.parameters == {"why": "no connection was possible"}


def test_a_connection_timeout_proves_that_nothing_was_sent(gateway: Gateway) -> None:
    with full_port() as port:
        error = refused(gateway(f"http://127.0.0.1:{port}/v2", connect_timeout=0.3))
    assert type(error) is NotSentError
    assert error.parameters == {"why": "connecting took too long"}


def test_an_unknown_host_proves_that_nothing_was_sent(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_args: object, **_options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = refused(gateway("https://service.invalid/v2"))
    assert type(error) is NotSentError
    assert error.parameters == {"why": "the name of its server was not found"}


def test_a_slow_name_resolution_proves_that_nothing_was_sent(
    serve: Serve, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(stub.answer(200, ACCEPTED))
    find = socket.getaddrinfo

    def late(*args: Any, **options: Any) -> Any:
        server.stopping.wait(0.2)
        return find(*args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", late)
    assert type(refused(gateway(server.url, connect_timeout=0.1))) is NotSentError
    assert server.requests == []


def test_nothing_is_written_if_the_deadline_passes_while_connecting(serve: Serve, gateway: Gateway) -> None:
    received: list[bytes] = []
    server = serve(stub.keeping(received))
    with write_only_while(lambda: not server.has_accepted()):
        error = refused(gateway(server.url))
    assert type(error) is NotSentError
    assert str(error) == "The time limit for sending had passed. Nothing was sent."
    assert server.ended(received) == b""


def test_the_request_is_not_completed_if_the_deadline_passes_between_writes(
    serve: Serve, gateway: Gateway
) -> None:
    received: list[bytes] = []
    server = serve(stub.keeping(received))
    moments = iter([True, False])
    with write_only_while(lambda: next(moments)):
        assert type(refused(gateway(server.url))) is OutcomeUnknownError
    assert server.ended(received).endswith(b"\r\n\r\n")


def test_nothing_is_sent_without_the_one_time_code(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, ACCEPTED))
    with pytest.raises(NotSentError):
        gateway(server.url).balances.withdraw(WITHDRAWAL, otp=None)
    assert server.connections == 0


def test_a_one_time_code_must_be_a_secret_string(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, ACCEPTED))
    uncovered: Any = "canary-token"
    with pytest.raises(TypeError, match="must be a SecretStr") as caught:
        gateway(server.url).balances.withdraw(WITHDRAWAL, otp=uncovered)
    assert "canary" not in str(caught.value)
    assert server.connections == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.balances.withdraw(WITHDRAWAL, otp=SecretStr("canary\ud800")),
        lambda client: client.api_keys.invalidate(SecretStr("canary\ud800")),
        lambda client: client.api_keys.delete("canary\ud800"),
        lambda client: client.balances.list("canary\ud800"),
    ],
    ids=["token", "key", "hash", "currency"],
)
def test_unencodable_text_is_not_sent(
    serve: Serve, gateway: Gateway, call: Callable[[PaymentsGateway], object]
) -> None:
    """A refusal could not even be searched for such a code, and the error would carry it."""
    server = serve(stub.answer(400, {"success": False, "message": "no"}))
    with pytest.raises(NotSentError) as caught:
        call(gateway(server.url))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert server.connections == 0


def test_a_deployment_may_make_the_one_time_code_optional(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, ACCEPTED))
    client = gateway(server.url, profile=ProviderProfile(otp_required=False))
    assert client.balances.withdraw(WITHDRAWAL, otp=None).transaction_id == "T-1"
    assert b"token" not in server.requests[0].body
