"""A withdrawal, and what the books have of it, as plain functions."""

import time
from collections.abc import Callable

from tests.sandbox.conftest import Service
from tests.sandbox.raw_http import Received, exchanged

WITHDRAW = "balances.withdraw"


def withdrawal(service: Service) -> Received:
    return exchanged(service.process, "POST", "/v2/balance/withdraw", service.withdrawal())


def executed(service: Service) -> int:
    """How many withdrawals the books have."""
    return len(service.process.ledger()["withdrawals"])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)  # between two checks of a condition with a deadline
