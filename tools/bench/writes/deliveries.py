"""P3: deliveries of webhooks per second at one web worker, on PostgreSQL, beside two other receivers.

Every delivery is new and signed. Eight connections each send the next one as soon as the last was answered. The worker
has one core, as in P10, so that neither the sender nor the database takes its time.
"""

import base64
import json
import os
import selectors
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tools.bench import databases
from tools.bench.databases import BenchDatabase, temporary_database
from tools.bench.measure import OURS, Measure, alternate, compared
from tools.bench.product import pin_to_one_core
from tools.processes import WEBHOOK_SECRET, Stack, StackError, free_port

CONNECTIONS = 8
BARE, STOCK = "bare INSERT", "stock view"
_TABLES = """
CREATE TABLE rival_bare (id bigserial PRIMARY KEY, received_at timestamptz NOT NULL, body bytea NOT NULL);
CREATE TABLE rival_stock (
    id bigserial PRIMARY KEY, identity varchar(64) NOT NULL UNIQUE, received_at timestamptz NOT NULL,
    event varchar(200) NOT NULL, data jsonb NOT NULL, headers jsonb NOT NULL, body bytea NOT NULL)
"""
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)


@dataclass
class Receiver:
    """One side: where it listens, and the milliseconds of each answer."""

    port: int
    path: str
    took: list[float] = field(default_factory=list)

    def deliveries_per_second(self, bodies: Sequence[bytes]) -> float:
        """Send these and wait for each answer. Raises StackError for any other status than 200."""
        began = time.perf_counter()
        self.took += send_all(self.port, [_request(self.path, body) for body in bodies])
        return len(bodies) / (time.perf_counter() - began)


def delivery_measures(rounds: int, count: int) -> Iterator[Measure]:
    """Of `count` deliveries in each round, one worker each."""
    with temporary_database("deliveries") as database, tempfile.TemporaryDirectory() as folder:
        signer, keys = signing_key(Path(folder))
        with receivers(database, keys) as sides:
            for side in sides.values():
                side.deliveries_per_second([signed_delivery(signer) for _ in range(50)])
                side.took.clear()
            found = alternate(
                rounds, {name: partial(_round, one, signer, count) for name, one in sides.items()}
            )
        _check_stored(database, rounds * count)
    what = f"deliveries of webhooks stored, from {CONNECTIONS} connections, one web worker"
    target = {BARE: 0.9, STOCK: 1.5}
    yield compared("P3.rate", what, found, "/s", target, limit_is="least")
    late = {name: _p99(side.took) for name, side in sides.items()}
    yield Measure(
        "P3.late",
        "99th percentile of these answers, to that of the bare view",
        late[OURS] / late[BARE],
        "x",
        2,
        note=f"{late[OURS]:.1f} ms; bare view {late[BARE]:.1f} ms, stock view {late[STOCK]:.1f} ms",
    )


def _round(side: Receiver, signer: rsa.RSAPrivateKey, count: int) -> float:
    return side.deliveries_per_second([signed_delivery(signer) for _ in range(count)])


def _p99(took: list[float]) -> float:
    return sorted(took)[int(0.99 * len(took))]


def _check_stored(database: BenchDatabase, count: int) -> None:
    """What was answered is stored, once, and verified. Raises StackError."""
    with psycopg.connect(database.url) as session:
        counted = session.execute("SELECT count(*) FROM webhooks_delivery WHERE verdict = 'valid'").fetchone()
    if counted != (count + 50,):
        raise StackError(f"{counted} deliveries are stored, not {count + 50}")


@contextmanager
def receivers(database: BenchDatabase, keys: Path) -> Iterator[dict[str, Receiver]]:
    """The three receivers, each one worker with eight threads, all on the same core."""
    with psycopg.connect(database.url) as session:
        session.execute(_TABLES)
    with ExitStack() as ended:
        found = {OURS: our_receiver(ended, database, keys)}
        for name, rival in ((BARE, "bare"), (STOCK, "stock")):
            found[name] = Receiver(_start_rival(ended, rival, database, keys), f"/hooks/{rival}/")
        yield found


def our_receiver(ended: ExitStack, database: BenchDatabase, keys: Path) -> Receiver:
    """The product's web process on this database, on one core."""
    ours = Stack(
        databases.FOLDER,
        free_port(),
        free_port(),
        extra={
            "COUNTERSIGN_DEMO": "0",
            "COUNTERSIGN_DATABASE_URL": database.url,
            "COUNTERSIGN_WEBHOOK_KEYS": str(keys),
            "COUNTERSIGN_LOG_LEVEL": "WARNING",
        },
    )
    ended.callback(ours.stop)
    ours.start_web()
    pin_to_one_core(ours.processes["web"].pid)
    return Receiver(ours.web_port, f"/hooks/{WEBHOOK_SECRET}/")


def _start_rival(ended: ExitStack, name: str, database: BenchDatabase, keys: Path) -> int:
    variables = {
        "DJANGO_SETTINGS_MODULE": "tools.bench.writes.rival_settings",
        "BENCH_RIVAL": name,
        "BENCH_DATABASE_URL": database.url,
        "BENCH_WEBHOOK_KEYS": str(keys),
    }
    rival = Stack(databases.FOLDER, free_port(), free_port(), extra=variables)
    ended.callback(rival.stop)
    rival.run(
        *(name, "-m", "gunicorn", "django.core.wsgi:get_wsgi_application()", "--config", os.devnull),
        *("--bind", f"127.0.0.1:{rival.web_port}", "--worker-class", "gthread", "--threads", "8"),
        *("--log-level", "warning"),
    )
    rival.wait_for(name, f"{rival.web}/")
    pin_to_one_core(rival.processes[name].pid)
    return rival.web_port


def signing_key(folder: Path) -> tuple[rsa.RSAPrivateKey, Path]:
    """A new key of the provider, and the file with its public half."""
    signer = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    keys = folder / "keys.pem"
    keys.write_bytes(signer.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return signer, keys


def signed_delivery(signer: rsa.RSAPrivateKey) -> bytes:
    """A new delivery as the provider writes it, of the usual size."""
    data = {
        "transactionId": str(uuid.uuid4()),
        "currency": "NGN",
        "type": "withdrawal",
        "status": "fullfiled",
        "amount": 250000,
        "reference": uuid.uuid4().hex,
        "bankName": "Access Bank",
        "accountName": "ADA OBI",
        "accountNumber": "0690000031",
        "createdAt": "2026-11-20T10:00:00.000Z",
        "updatedAt": "2026-11-20T10:00:07.000Z",
    }
    signed = json.dumps(data, separators=(",", ":"))
    signature = base64.b64encode(signer.sign(signed.encode(), _PSS, hashes.SHA256())).decode()
    return f'{{"event":"Transaction updated","data":{signed},"signature":"{signature}"}}'.encode()


def _request(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: provider/1.0\r\nAccept: */*\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def send_all(port: int, requests: Sequence[bytes]) -> list[float]:
    """Send all over `CONNECTIONS` connections; the milliseconds of each. Raises StackError."""
    waiting, took = list(reversed(requests)), []
    selector = selectors.DefaultSelector()
    began: dict[socket.socket, float] = {}

    def send_next(line: socket.socket) -> None:
        if waiting:
            began[line] = time.perf_counter()
            line.sendall(waiting.pop())
        else:
            selector.unregister(line)
            line.close()

    for _ in range(min(CONNECTIONS, len(waiting))):
        line = socket.create_connection(("127.0.0.1", port), timeout=60)
        selector.register(line, selectors.EVENT_READ, line)
        send_next(line)
    while selector.get_map():
        for key, _events in selector.select():
            line = key.data
            answer = line.recv(65_536)
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise StackError(f"A delivery was answered with {answer[:200]!r}")
            took.append((time.perf_counter() - began[line]) * 1000)
            send_next(line)
    selector.close()
    return took
