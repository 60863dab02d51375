"""TLS: what fails before the connection is ready proves that nothing was sent; what fails later does not."""

import ipaddress
import os
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from payments_gateway import NotSentError, OutcomeUnknownError, write_only_while
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.situations import A_MINUTE_OF_DRIPS, ACCEPTED, refused, withdraw


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of our own for 127.0.0.1, in one file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stub")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, clear = serialization.Encoding.PEM, serialization.NoEncryption()
    path = tmp_path_factory.mktemp("tls") / "stub.pem"
    path.write_bytes(
        signed.public_bytes(encoding) + key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, clear)
    )
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def garble(peer: stub.Peer) -> bool:
    """Take the request over TLS, then answer beneath it with bytes that are no TLS."""
    peer.read_request()
    with socket.socket(fileno=os.dup(peer.sock.fileno())) as beneath:
        beneath.sendall(b"this is not TLS" * 10)
    peer.hold()
    return False


def test_a_withdrawal_works_over_tls(
    serve: Serve, gateway: Gateway, tls: ssl.SSLContext, certificate: Path
) -> None:
    server = serve(stub.answer(200, ACCEPTED), tls=tls)
    assert withdraw(gateway(server.url, ca_file=str(certificate))).transaction_id == "T-1"


def test_an_untrusted_certificate_proves_that_nothing_was_sent(
    serve: Serve, gateway: Gateway, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, certificate: Path
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    server = serve(stub.answer(200, ACCEPTED), tls=tls)
    assert type(refused(gateway(server.url))) is NotSentError
    assert server.requests == []


def test_a_server_without_tls_proves_that_nothing_was_sent(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert type(refused(gateway(server.url.replace("http:", "https:"), connect_timeout=0.5))) is NotSentError


@pytest.mark.parametrize("behaviour", [stub.reset_after_accept, stub.silent])
def test_a_handshake_that_fails_proves_that_nothing_was_sent(
    serve: Serve, gateway: Gateway, behaviour: stub.Behaviour
) -> None:
    server = serve(behaviour)
    assert type(refused(gateway(server.url.replace("http:", "https:"), connect_timeout=0.5))) is NotSentError


@pytest.mark.parametrize("behaviour", [garble, stub.reset_after_request, stub.reset_in_answer])
def test_a_failure_within_tls_proves_nothing(
    serve: Serve, gateway: Gateway, tls: ssl.SSLContext, certificate: Path, behaviour: stub.Behaviour
) -> None:
    server = serve(behaviour, tls=tls)
    assert type(refused(gateway(server.url, ca_file=str(certificate)))) is OutcomeUnknownError
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "behaviour", [stub.silent_in_body, stub.drip(b"HTTP/1.1 200 OK" * (A_MINUTE_OF_DRIPS // 15))]
)
def test_a_slow_response_within_tls_is_awaited_until_the_deadline(
    serve: Serve, gateway: Gateway, tls: ssl.SSLContext, certificate: Path, behaviour: stub.Behaviour
) -> None:
    server = serve(behaviour, tls=tls)
    started = time.monotonic()
    error = refused(gateway(server.url, ca_file=str(certificate), deadline=3.0))
    assert type(error) is OutcomeUnknownError
    assert 3.0 <= time.monotonic() - started < 40
    assert len(server.requests) == 1


def test_nothing_is_written_if_the_deadline_passes_during_the_handshake(
    serve: Serve, gateway: Gateway, tls: ssl.SSLContext, certificate: Path
) -> None:
    """The stub is asked for a request only when TLS is ready on its side, too."""
    received: list[bytes] = []
    server = serve(stub.keeping(received), tls=tls)
    with write_only_while(lambda: not server.has_accepted()):
        error = refused(gateway(server.url, ca_file=str(certificate)))
    assert type(error) is NotSentError
    assert server.ended(received) == b""
