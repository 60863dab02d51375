"""The situations that calls are put into, and the withdrawal that most of them are tried with."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from payments_gateway import GatewayError, PaymentsGateway, Withdrawal, WithdrawalReceipt
from tests.payments_gateway import stub

WITHDRAWAL = Withdrawal(
    account_number="0123456789",
    account_name="ADA OBI",
    bank="Access Bank",
    bank_code="044",
    currency="NGN",
    amount="250000.00",
)
ACCEPTED = {"data": {"transactionId": "T-1"}}


def withdraw(gateway: PaymentsGateway) -> WithdrawalReceipt:
    return gateway.balances.withdraw(WITHDRAWAL, otp=SecretStr("482913"))


def refused(gateway: PaymentsGateway) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        withdraw(gateway)
    return caught.value


UNREADABLE = {
    "empty": b"",
    "html": b"<html><body>Bad gateway</body></html>",
    "truncated": b'{"data": {"transactionId": "T-',
    "not an object": b"[]",
    "number": b"1",
    "null": b"null",
    "NaN": b'{"data": {"amount": NaN}}',
    "infinity": b'{"data": {"amount": -Infinity}}',
    "huge exponent": b'{"data": {"amount": 1e999999999}}',
    "absurd exponent": b'{"data": {"amount": 1e99999999999999999999}}',
    "endless integer": b'{"data": {"amount": ' + b"9" * 5000 + b"}}",
    "ambiguous": b'{"data": {"id": "1"}, "data": {"id": "2"}}',
    "deep": b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "quite deep": b'{"data": {"a": ' + b"[" * 100 + b"]" * 100 + b"}}",
    "not utf-8": b'{"data": {"name": "\xff\xfe"}}',
    "10 MB": b'{"data": {"padding": "' + b"x" * 10_000_000 + b'"}}',
}


BROKEN: dict[str, stub.Behaviour] = {
    "reset after accept": stub.reset_after_accept,
    "reset after head": stub.reset_after_head,
    "reset after request": stub.reset_after_request,
    "reset in answer": stub.reset_in_answer,
    "closed without answer": stub.close_after_request,
    "not http": stub.raw(b"SSH-2.0-stub\r\n"),
    "promised too much": stub.answer(200, ACCEPTED, length=10_000),
    "promised too little": stub.answer(200, ACCEPTED, length=10),
    "broken chunks": stub.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
    "unfinished chunks": stub.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    "broken compression": stub.answer(200, b'{"data": {}}', ("Content-Encoding: gzip",)),
    "endless head": stub.raw(b"HTTP/1.1 200 OK\r\n" + b"X-Line: 1\r\n" * 1000 + b"\r\n{}"),
}


A_MINUTE_OF_DRIPS = 3000
SLOW: dict[str, stub.Behaviour] = {
    "no answer": stub.silent,
    "silent in head": stub.silent_in_head,
    "silent in body": stub.silent_in_body,
    "dripping head": stub.drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * A_MINUTE_OF_DRIPS),
    "dripping body": stub.drip(stub.message(200, b"{" + b" " * A_MINUTE_OF_DRIPS)),
    "dripping lines": stub.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * (A_MINUTE_OF_DRIPS // 25)),
}


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port whose queue of connections is full, so that connecting to it waits for ever."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses every connection, and that nobody else can begin to listen on meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
