"""A gateway that speaks real HTTP to a stub, with a clock that only sleeping moves."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic import SecretStr

from payments_gateway import GatewayConfig, PaymentsGateway
from payments_gateway.transport import Transport
from tests.payments_gateway.stub import Behaviour, Stub

Serve = Callable[..., Stub]
Gateway = Callable[..., PaymentsGateway]


class Clock:
    """A clock that does not advance, except while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def config(url: str, **changes: Any) -> GatewayConfig:
    """The configuration of a test: real, but impatient."""
    settings: dict[str, Any] = {
        "base_url": url,
        "base_url_v4": url.replace("/v2", "/v4"),
        "api_key": SecretStr("canary-key-7f3a"),
        "api_user": "merchant",
        "connect_timeout": 10.0,
        "deadline": 20.0,
    }
    return GatewayConfig(**(settings | changes))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a stub with these behaviours; it is stopped after the test."""
    with ExitStack() as stack:

        def start(*behaviours: Behaviour, **options: Any) -> Stub:
            return stack.enter_context(Stub(*behaviours, **options))

        yield start


@pytest.fixture
def gateway(clock: Clock) -> Iterator[Gateway]:
    """Build a client of this address; its connections are closed after the test."""
    with ExitStack() as stack:

        def build(url: str, **changes: Any) -> PaymentsGateway:
            settings = config(url, **changes)
            transport = Transport(settings, clock=clock, sleep=clock.sleep, chance=lambda: 0.5)
            return stack.enter_context(PaymentsGateway(settings, transport=transport))

        yield build
