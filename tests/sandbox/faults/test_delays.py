"""Nobody sleeps: a delay of ten minutes ends when its fault is removed."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.raw_http import Received, connected, exchanged, received, written
from tests.sandbox.withdrawals import WITHDRAW, executed, until, withdrawal
from tests.sandbox_process import SandboxProcess


@pytest.fixture
def held(provider: SandboxClient) -> Callable[..., Received]:
    """Send a withdrawal that a delay holds, read the books, let it go on."""

    def hold(when: str, executions: int) -> Received:
        fault = provider.process.fault(WITHDRAW, "delay", seconds=600, when=when)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(withdrawal, provider)
            until(lambda: provider.process.hits(fault) == 1 and executed(provider) == executions)
            provider.process.clear_faults(fault)
            return answer.result(120)

    return hold


@pytest.mark.parametrize(("when", "executions"), [("before_execution", 0), ("after_execution", 1)])
def test_the_ledger_changes_before_or_after_the_delay(
    provider: SandboxClient, held: Callable[..., Received], when: str, executions: int
) -> None:
    assert held(when, executions).status == 200
    assert executed(provider) == 1


@pytest.mark.parametrize("when", ["before_execution", "after_execution"])
def test_a_request_abandoned_by_the_client_is_executed(provider: SandboxClient, when: str) -> None:
    fault = provider.process.fault(WITHDRAW, "delay", seconds=600, when=when)
    with connected(provider.process) as connection:
        connection.sendall(written(provider.process, "POST", "/v2/balance/withdraw", provider.withdrawal()))
        until(lambda: provider.process.hits(fault) == 1)
    provider.process.clear_faults(fault)
    until(lambda: executed(provider) == 1)


def test_a_delay_expires(provider: SandboxClient) -> None:
    provider.process.fault("balances.list", "delay", seconds=0.2)
    began = time.monotonic()
    assert exchanged(provider.process, "GET", "/v2/balance").status == 200
    assert time.monotonic() - began >= 0.2


def test_delays_add_up_and_combine_with_another_fault(provider: SandboxClient) -> None:
    provider.process.fault("balances.list", "delay", seconds=0.1)
    provider.process.fault("balances.list", "delay", seconds=0.1, when="after_execution")
    provider.process.fault("balances.list", "status", status=500, when="after_execution")
    began = time.monotonic()
    assert exchanged(provider.process, "GET", "/v2/balance").status == 500
    assert time.monotonic() - began >= 0.2


def test_a_reset_drops_delayed_requests_unexecuted(provider: SandboxClient) -> None:
    fault = provider.process.fault(WITHDRAW, "delay", seconds=600)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(withdrawal, provider)
        until(lambda: provider.process.hits(fault) == 1)
        provider.process.reset()
        assert answer.result(120) == Received(b"", reset=True)
    assert executed(provider) == 0


@pytest.mark.parametrize("delays", [1, 2])
def test_delays_leave_room_for_the_control_api(provider: SandboxClient, delays: int) -> None:
    """Six requests wait at most, however many delays each of them has."""
    for _ in range(delays):
        fault = provider.process.fault("balances.list", "delay", seconds=600, times=None)
    with ThreadPoolExecutor(12) as pool:
        answers = [pool.submit(exchanged, provider.process, "GET", "/v2/balance") for _ in range(12)]
        until(lambda: sum(answer.done() for answer in answers) == 6)
        assert provider.process.hits(fault) == 6
        provider.process.clear_faults()
        assert {answer.result(120).status for answer in answers} == {200}
    again = provider.process.fault("balances.list", "delay", seconds=0.01)
    assert provider.get("/balance").status_code == 200
    assert provider.process.hits(again) == 1


def test_a_held_request_does_not_keep_the_process_from_ending() -> None:
    with SandboxProcess() as process, connected(process) as connection:
        fault = process.fault("balances.list", "delay", seconds=600)
        connection.sendall(written(process, "GET", "/v2/balance"))
        until(lambda: process.hits(fault) == 1)
        process.stop()
        assert received(connection).data == b""
