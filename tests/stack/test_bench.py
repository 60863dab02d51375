"""What `make bench` says of a measure, and its measures of the service alone, on a small scale."""

from pathlib import Path

import pytest

from stack.bench import Measure, balances_per_second, keep_to_one_core
from stack.processes import throwaway_sandbox


@pytest.mark.parametrize(
    ("value", "limit_is", "verdict"),
    [(20, "most", "met"), (20.1, "most", "MISSED"), (20, "least", "met"), (19.9, "least", "MISSED")],
)
def test_a_limit_is_the_most_or_the_least(value: float, limit_is: str, verdict: str) -> None:
    line = str(Measure("something", value, "s", 20, limit_is))  # type: ignore[arg-type]
    assert f"at {limit_is}" in line
    assert line.split()[-1] == verdict


@pytest.mark.stack
def test_balances_are_counted_at_a_service_that_keeps_to_one_core(tmp_path: Path) -> None:
    with throwaway_sandbox(tmp_path, transactions=60) as stack:
        keep_to_one_core(stack.processes["sandbox"].pid)
        assert balances_per_second(f"{stack.sandbox}/v2/balance", seconds=0.5) > 1
