"""The broker is reached over TLS only with a certificate of a trusted authority for its host name."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

from backoffice.celery import app, broker_tls
from tools.rehearsal.certificates import write_certificate

SCHEMES = pytest.mark.parametrize("scheme", ["rediss", "amqps"])


class TlsServer:
    """Counts the completed handshakes; ends each connection after it."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.handshakes: list[bool] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                try:
                    # A read after the handshake: in TLS 1.3 the client refuses the certificate after it.
                    with self._context.wrap_socket(peer, server_side=True) as channel:
                        self.handshakes.append(bool(channel.recv(1)))
                except OSError:
                    self.handshakes.append(False)
                finally:
                    peer.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    return write_certificate(tmp_path)


@pytest.fixture
def server(certificate: tuple[Path, Path]) -> Iterator[TlsServer]:
    server = TlsServer(*certificate)
    yield server
    server.close()


def connects(url: str, server: TlsServer, ca_file: str) -> bool:
    """Whether a client of this address sends anything to the server."""
    client = Celery(broker=url, set_as_current=False)
    client.conf.update(broker_use_ssl=broker_tls(url, ca_file), broker_connection_timeout=5)
    with client.connection_for_write() as connection, suppress(OperationalError, OSError):
        connection.ensure_connection(max_retries=1, timeout=5)
    assert server.handshakes
    return any(server.handshakes)


@SCHEMES
def test_a_trusted_certificate_of_the_host_is_accepted(
    scheme: str, server: TlsServer, certificate: tuple[Path, Path]
) -> None:
    assert connects(f"{scheme}://localhost:{server.port}//", server, str(certificate[0]))


@SCHEMES
def test_a_certificate_for_another_host_is_refused(
    scheme: str, server: TlsServer, certificate: tuple[Path, Path]
) -> None:
    assert not connects(f"{scheme}://127.0.0.2:{server.port}//", server, str(certificate[0]))


@SCHEMES
def test_a_certificate_of_an_unknown_authority_is_refused(scheme: str, server: TlsServer) -> None:
    assert not connects(f"{scheme}://localhost:{server.port}//", server, "")


def test_the_product_uses_these_options() -> None:
    assert app.conf.broker_use_ssl == broker_tls(settings.CELERY_BROKER_URL, settings.BROKER_CA_FILE)
    assert broker_tls("amqp://localhost//", "") is None
