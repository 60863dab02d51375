"""How a request is framed: sizes, chunks, paths, hosts; and that an internal error reveals nothing."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest
import requests

from tests.sandbox import raw_http
from tests.sandbox.conftest import SandboxClient
from tests.sandbox.hostile_requests import JSON
from tests.sandbox_process import SandboxProcess


def test_a_body_of_one_megabyte_is_read(provider: SandboxClient) -> None:
    body = b'{"accountNumber": "0123456789", "bankCode": "044"}'.ljust(1024 * 1024)
    assert (
        provider.session.post(
            f"{provider.process.url}/bank/resolve", data=body, headers=JSON, timeout=30
        ).status_code
        == 200
    )


def test_a_chunked_body_is_read(provider: SandboxClient) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"accountNumber": "0123456789", '
        yield b'"bankCode": "044"}'

    response = provider.session.post(
        f"{provider.process.url}/bank/resolve", data=chunks(), headers=JSON, timeout=30
    )
    assert response.json()["data"]["accountnumber"] == "0123456789"


@pytest.mark.parametrize(
    "path", ["/v2/", "/v2/balance/", "/v2/nothing", "/v4/nothing", "/_sandbox/nothing", "/%ff"]
)
def test_an_unknown_path_is_refused_in_json(provider: SandboxClient, path: str) -> None:
    response = provider.session.get(provider.process.address + path, timeout=30)
    assert response.status_code == 404
    assert response.json() == {"success": False, "message": "there is no such path"}


def test_an_invalid_host_header_is_refused(provider: SandboxClient) -> None:
    response = provider.session.get(
        f"{provider.process.url}/balance", headers={"Host": "no such host"}, timeout=30
    )
    assert response.status_code == 400
    assert response.json() == {"success": False, "message": "the request cannot be read"}


def test_an_internal_error_is_logged_and_reveals_nothing() -> None:
    """Provoked for real: a table is renamed under the running provider, and back."""
    with SandboxProcess() as process, closing(process.books()) as books:
        books.execute("ALTER TABLE sandbox_account RENAME TO gone")
        response = requests.get(f"{process.url}/balance", headers=process.headers, timeout=30)
        assert response.status_code == 500
        assert response.json() == {"success": False, "message": "internal error"}
        assert "no such table: sandbox_account" in process.output()
        books.execute("ALTER TABLE gone RENAME TO sandbox_account")
        assert requests.get(f"{process.url}/balance", headers=process.headers, timeout=30).status_code == 200


def test_a_badly_chunked_body_is_refused(provider: SandboxClient) -> None:
    head = b"POST /v2/bank/resolve HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connection(provider) as client:
        client.sendall(head + b"zz\r\n{")
        assert client.recv(4096).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"]
)
def test_a_client_that_disconnects_mid_body_does_no_harm(provider: SandboxClient, framing: bytes) -> None:
    with connection(provider) as client:
        client.sendall(b"POST /v2/bank/resolve HTTP/1.1\r\nHost: x\r\n" + framing)
    assert provider.get("/balance").status_code == 200


def connection(provider: SandboxClient) -> socket.socket:
    address = urlsplit(provider.process.address)
    return socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=60)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /v2/balance?a=" + b"x" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /v2/balance HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 10_000 + b"\r\n\r\n", 431),
        (b"GET /v2/balance HTTP/1.1\r\nHost x\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_malformed_http_is_refused_in_json(
    provider: SandboxClient, request_bytes: bytes, status: int
) -> None:
    with connection(provider) as client:
        client.sendall(request_bytes)
        answer = raw_http.received(client)
    assert answer.status == status
    assert answer.header("Content-Type") == "application/json"
    assert json.loads(answer.body) == {"success": False, "message": "the request cannot be read"}
