"""A withdrawal and its ledger entries."""

import time
from collections.abc import Callable

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.raw_http import Received, exchanged

WITHDRAW = "balances.withdraw"


def withdrawal(provider: SandboxClient) -> Received:
    return exchanged(provider.process, "POST", "/v2/balance/withdraw", provider.withdrawal())


def executed(provider: SandboxClient) -> int:
    """How many withdrawals the books have."""
    return len(provider.process.ledger()["withdrawals"])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)  # between two checks of a condition with a deadline
