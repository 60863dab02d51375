"""Receiving the webhooks of the sandbox: a callback URL of ours, and waiting for what arrives there."""

import time
from collections.abc import Callable
from typing import Any

import requests

from payments_gateway.webhooks import PublicKey, ReceivedWebhook, load_public_key, verify_webhook
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Stub
from tests.sandbox_process import SandboxProcess

_PATIENCE_SECONDS = 120
TAKEN = stub.answer(200, {})

Receive = Callable[..., Stub]


def eventually(found: Callable[[], Any]) -> Any:
    """What is found once there is something to find."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.02)  # between two checks of a condition with a deadline
    raise AssertionError("It did not happen in time.")


def arrived(receiver: Stub, count: int) -> list[bytes]:
    """The bodies that have arrived, once there are so many; never more."""
    eventually(lambda: len(receiver.requests) >= count)
    assert len(receiver.requests) == count
    return [request.body for request in receiver.requests]


def in_state(process: SandboxProcess, state: str, count: int = 1) -> list[Any]:
    """All deliveries, newest first, once so many are in this state."""

    def found() -> list[Any]:
        deliveries = process.deliveries()
        return deliveries if [each["state"] for each in deliveries].count(state) == count else []

    return list(eventually(found))


def tried(process: SandboxProcess, count: int = 1) -> Any:
    """The newest delivery, once so many tries were made; a late reader may see one more."""

    def found() -> Any:
        newest = process.deliveries()[0]
        return newest if len(newest["attempts"]) >= count else None

    return eventually(found)


def keys(process: SandboxProcess) -> list[PublicKey]:
    """The public keys of the provider, newest first."""
    answer = requests.get(f"{process.control}/webhooks/keys", timeout=30).json()
    return [load_public_key(key["pem"]) for key in answer["keys"]]


def judged(process: SandboxProcess, bodies: list[bytes]) -> list[ReceivedWebhook]:
    """What our client makes of these bodies."""
    return [verify_webhook(body, keys(process)) for body in bodies]


def point_to(process: SandboxProcess, url: str) -> None:
    """Make this the callback URL."""
    answer = requests.put(
        f"{process.url}/callbackurl", json={"callbackUrl": url}, headers=process.headers, timeout=30
    )
    assert answer.status_code == 200


def faults(process: SandboxProcess) -> Any:
    """The faults of deliveries that are in force, by kind."""
    return requests.get(f"{process.control}/webhooks/faults", timeout=30).json()["faults"]
