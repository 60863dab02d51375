"""Header lines that no honest server sends: none of them may break a call, only decide how it ends."""

import pytest

from payments_gateway import OutcomeUnknownError, RejectedError
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.situations import refused, withdraw

ODD_LINES = [
    b"Content-Type: text/html; charset",
    b"Content-Type: text/html; charset=\xff",
    b"Content-Type: multipart/form-data; boundary=x",
    b"Date: Fri, 21 Nov 2025 10:00:00 +99999999999999999999999",
    b"Date: Fri, 99999999999 Nov 99999999999999999999 10:00:00 GMT",
    b"Date: Sat, 01 Jan 0001 00:00:00 +2300",
    b"Date: Fri, 31 Dec 9999 23:59:59 GMT",
    b"Date: ,",
    b"Date: 1 2 3 4 5 6",
    b"Retry-After: " + b"9" * 5000,
    b"Retry-After: \x1d1",
    b"Retry-After: Sat, 01 Jan 0001 00:00:00 +2300",
    b"Set-Cookie: a=b; expires=Fri, 99 Foo; Max-Age=zz; domain=..",
    b"Set-Cookie: \xff=\x00",
    b"Content-Encoding: nonsense",
    b"Location: http://[::1",
    b"Location: \xff\xfe",
    b"Connection: upgrade",
    b"WWW-Authenticate: Digest",
    b" folded",
    b": nothing",
    b"no colon",
]
YES = b'{"data": {"transactionId": "T-1"}}'
ODD_STATUS_LINES = [
    b"HTTP/1.1 abc X",
    b"HTTP/1.1 -1 X",
    b"HTTP/1.1 1000 X",
    b"HTTP/9.9 200 X",
    b"HTTP/1.1",
    b"",
    b"\x00",
]


def head(status: bytes, line: bytes) -> bytes:
    return b"HTTP/1.1 " + status + b" X\r\n" + line + b"\r\n\r\n"


@pytest.mark.parametrize("line", ODD_LINES)
def test_malformed_header_lines_do_not_change_the_result(serve: Serve, gateway: Gateway, line: bytes) -> None:
    yes = stub.raw(head(b"200", line) + YES)
    no = stub.raw(head(b"400", line) + b'{"message": "No"}')
    client = gateway(serve(yes, no).url)
    assert withdraw(client).transaction_id == "T-1"
    assert isinstance(refused(client), RejectedError)


@pytest.mark.parametrize("length", [b"-5", b"abc", b"\xb2", b""])
def test_a_meaningless_content_length_is_ignored(serve: Serve, gateway: Gateway, length: bytes) -> None:
    server = serve(stub.raw(head(b"200", b"Content-Length: " + length) + YES))
    assert withdraw(gateway(server.url)).transaction_id == "T-1"


@pytest.mark.parametrize("length", [b"0", b"5", b"5, 6", b"9" * 30])
def test_a_content_length_that_contradicts_the_body_proves_nothing(
    serve: Serve, gateway: Gateway, length: bytes
) -> None:
    server = serve(stub.raw(head(b"200", b"Content-Length: " + length) + YES))
    assert type(refused(gateway(server.url))) is OutcomeUnknownError


@pytest.mark.parametrize("line", ODD_STATUS_LINES)
def test_a_malformed_status_line_proves_nothing(serve: Serve, gateway: Gateway, line: bytes) -> None:
    server = serve(stub.raw(line + b"\r\n\r\n" + YES))
    assert type(refused(gateway(server.url))) is OutcomeUnknownError
