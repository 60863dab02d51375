"""P7: a hundred reads from the provider by our client, beside a new session for each, over TLS."""

import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from payments_gateway import GatewayConfig, PaymentsGateway
from tools.bench.databases import BenchError
from tools.bench.measure import Measure, in_turns, medians_of
from tools.processes import ROOT

READ_COUNT = 100
BALANCE = {
    "toCurrency": "NGN",
    "amount": "1250000.50",
    "totalRecieved": "3000000.00",
    "totalSent": "1749999.50",
    "txnCount": 42,
    "formattedAmount": "1250000.50",
}
_ANSWER = json.dumps({"success": True, "message": "Balances", "data": {"balances": [BALANCE]}}).encode()


def client_read_measures(rounds: int) -> Iterator[Measure]:
    """Milliseconds for all reads."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = _certificate(Path(folder))
        with _server(Path(folder)) as address, _client(address, certificate) as gateway:
            headers = {"X-Api-Key": "bench", "X-Api-User": "bench", "X-User-Version": "v2"}

            def ours() -> None:
                gateway.balances.list("NGN")

            def a_session_each() -> None:
                with requests.Session() as session:
                    answer = session.get(
                        f"{address}/v2/balance?currency=NGN",
                        headers=headers,
                        verify=str(certificate),
                        timeout=10,
                    )
                    answer.raise_for_status()
                    answer.json()

            ours()
            a_session_each()
            found = in_turns(
                rounds, {"ours": lambda: _timed(ours), "session per call": lambda: _timed(a_session_each)}
            )
    yield Measure(
        id="P7",
        what=f"{READ_COUNT} reads from the service over TLS",
        value=found["ours"].median,
        unit="ms",
        rivals=medians_of(found, "session per call"),
        target={"session per call": 3},
        spread=found["ours"].spread,
        rounds=rounds,
    )


def _timed(read: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(READ_COUNT):
        read()
    return (time.perf_counter() - began) * 1000


def _client(address: str, certificate: Path) -> PaymentsGateway:
    return PaymentsGateway(
        GatewayConfig(
            base_url=f"{address}/v2",
            base_url_v4=f"{address}/v4",
            api_key=SecretStr("bench"),
            api_user="bench",
            ca_file=str(certificate),
        )
    )


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """The address of a server in a process of its own, so that it takes no CPU time of the client."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "tools.bench.client_reads", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            if not port:
                raise BenchError("The service with TLS did not start.")
            yield f"https://127.0.0.1:{port}"
        finally:
            process.terminate()


def _certificate(folder: Path) -> Path:
    """A certificate for this machine, with its key next to it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


class _BalanceServer(BaseHTTPRequestHandler):
    """Returns the same balance to every request, over persistent connections."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered, so that a response is one write

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve(folder: Path) -> None:
    """Serve on a free port, which is printed, until this process is ended."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _BalanceServer) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
