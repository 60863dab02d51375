"""P7: a hundred reads from the provider by our client, beside a new session for each, over TLS."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from pydantic import SecretStr

from payments_gateway import GatewayConfig, PaymentsGateway
from tools.bench.measure import OURS, Measure, alternate, compared
from tools.processes import Stack, free_port

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
_HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(_ANSWER)))]


def client_read_measures(rounds: int) -> Iterator[Measure]:
    """Milliseconds for all reads."""
    with _server() as (address, certificate), _client(address, certificate) as gateway:
        headers = {"X-Api-Key": "bench", "X-Api-User": "bench", "X-User-Version": "v2"}

        def ours() -> None:
            gateway.balances.list("NGN")

        def a_session_each() -> None:
            url = f"{address}/v2/balance?currency=NGN"
            with requests.Session() as session:
                answer = session.get(url, headers=headers, verify=certificate, timeout=10)
                answer.raise_for_status()
                answer.json()

        ours()
        a_session_each()
        sides = {OURS: lambda: _timed(ours), "session per call": lambda: _timed(a_session_each)}
        found = alternate(rounds, sides)
    what = f"{READ_COUNT} reads from the provider over TLS"
    yield compared("P7", what, found, "ms", {"session per call": 3})


def balance(
    _environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]
) -> list[bytes]:
    """A WSGI application that returns the same balance to every request."""
    start_response("200 OK", _HEADERS)
    return [_ANSWER]


def _timed(read: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(READ_COUNT):
        read()
    return (time.perf_counter() - began) * 1000


def _client(address: str, certificate: str) -> PaymentsGateway:
    return PaymentsGateway(
        GatewayConfig(
            base_url=f"{address}/v2",
            base_url_v4=f"{address}/v4",
            api_key=SecretStr("bench"),
            api_user="bench",
            ca_file=certificate,
        )
    )


@contextmanager
def _server() -> Iterator[tuple[str, str]]:
    """The address and certificate of a server in a process of its own, which takes no CPU time of the client."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-out",
            certificate,
        ]
        command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own arguments
        stack = Stack(Path(folder), free_port(), free_port())
        address = f"https://127.0.0.1:{stack.web_port}"
        try:
            stack.run(
                *("service", "-m", "gunicorn", "tools.bench.client_reads:balance", "--certfile", certificate),
                *("--keyfile", key, "--bind", f"127.0.0.1:{stack.web_port}"),
                *("--worker-class", "gthread", "--threads", "2", "--keep-alive", "60"),
                *("--config", os.devnull),  # not that of the product
            )
            stack.wait_for("service", address, certificate=certificate)
            yield address, certificate
        finally:
            stack.stop()
