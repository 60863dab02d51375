"""P8: the whole product: start-up time, memory, and the time from click to sending."""

import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import psutil
import requests

from payments_gateway.sandbox import API_KEY, API_USER, USER_VERSIONS
from tools.bench.measure import Measure, Sample, sampled
from tools.browser import HttpBrowser
from tools.processes import Stack, temporary_sandbox, temporary_stack
from tools.smoke import AMOUNT, WITHDRAWAL, prepare, wait_until_closed

NO_BROKER = "redis://127.0.0.1:9/0"
ROUNDS = 9
SEEDED = 100_000
READERS = 4
READ_SECONDS = 5.0


def product_measures() -> Iterator[Measure]:
    yield from _provider_measures()
    with tempfile.TemporaryDirectory() as folder:
        yield Measure(
            "demo.first", "make demo, first start after installation", _start(Path(folder)), "s", 30
        )
        yield Measure("demo.again", "make demo, second start", _start(Path(folder)), "s", 10)
    with tempfile.TemporaryDirectory() as folder, _without_codes(Path(folder)) as stack:
        yield Measure("demo.memory", "memory of all processes together", _memory(stack), "MB", 600)
        yield _send_latency("P8.local", "local broker", stack, 150)
    extra = {"COUNTERSIGN_BROKER_URL": NO_BROKER}
    with tempfile.TemporaryDirectory() as folder, _without_codes(Path(folder), extra=extra) as stack:
        yield _send_latency("P8.down", "broker down", stack, 3000)


def _without_codes(folder: Path, **changes: object) -> AbstractContextManager[Stack]:
    """The product with a provider that asks for no one-time code: the product accepts each code once, and the next one
    follows within thirty seconds.
    """
    return temporary_stack(folder, profile="published", settle_after=0.0, **changes)


def _provider_measures() -> Iterator[Measure]:
    """The simulated provider alone: time to generate a long history, and requests per second of one core."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        temporary_sandbox(Path(folder), transactions=SEEDED) as stack,
    ):
        seconds = time.monotonic() - began
        yield Measure(
            "service.start",
            f"sandbox started with a new history of {SEEDED:,} transactions",
            seconds,
            "s",
            20,
        )
        pin_to_one_core(stack.processes["sandbox"].pid)
        rate = balances_per_second(f"{stack.sandbox}/v2/balance")
        yield Measure("service.rate", "GET /balance at the sandbox, on one core", rate, "/s", 300, "least")


def pin_to_one_core(pid: int) -> None:
    """Run every thread of these processes, and their children, on one core."""
    core = {min(os.sched_getaffinity(0))}
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        for thread in process.threads():
            os.sched_setaffinity(thread.id, core)


def balances_per_second(address: str, seconds: float = READ_SECONDS) -> float:
    """Responses per second for several clients, each repeating its request as soon as it has the response."""
    began = time.monotonic()
    with ThreadPoolExecutor(READERS) as callers:
        answers = sum(callers.map(_read_until, [address] * READERS, [began + seconds] * READERS))
    return answers / (time.monotonic() - began)


def _read_until(address: str, deadline: float) -> int:
    answers = 0
    with requests.Session() as session:
        session.trust_env = (
            False  # reading netrc and proxy settings for each request costs more than the request
        )
        session.headers.update(
            {"X-Api-Key": API_KEY, "X-Api-User": API_USER, "X-User-Version": USER_VERSIONS[0]}
        )
        while time.monotonic() < deadline:
            session.get(address, timeout=10).raise_for_status()
            answers += 1
    return answers


def _start(folder: Path) -> float:
    """Seconds from the command to a usable page."""
    began = time.monotonic()
    with temporary_stack(folder):
        return time.monotonic() - began


def _memory(stack: Stack) -> float:
    """Megabytes used by the processes; shared pages are counted once."""
    total = 0
    for process in stack.processes.values():
        parent = psutil.Process(process.pid)
        total += sum(one.memory_full_info().pss for one in [parent, *parent.children(recursive=True)])
    return total / 1e6


def _send_latency(name: str, broker: str, stack: Stack, limit: float) -> Measure:
    """Milliseconds from the click until the provider executes."""
    with HttpBrowser(stack.web) as preparer, HttpBrowser(stack.web) as approver:
        preparer.sign_in("Tunde Bello")
        approver.sign_in("Amara Okafor")
        found = Sample(
            [_one_latency(stack, preparer, approver, AMOUNT + number) for number in range(1, ROUNDS + 1)]
        )
    return sampled(name, f"approve and send, {broker}", found, "ms", limit)


def _one_latency(stack: Stack, preparer: HttpBrowser, approver: HttpBrowser, amount: Decimal) -> float:
    operation = prepare(preparer, amount)
    page = approver.get(operation)
    before, clicked = len(_requests_executed(stack)), time.time()
    approver.submit(page, "/approve-and-send/")
    while len(arrivals := _requests_executed(stack)) == before:
        time.sleep(0.01)
    wait_until_closed(approver, operation)  # the next operation on this balance waits for it
    return (arrivals[-1] - clicked) * 1000


def _requests_executed(stack: Stack) -> list[float]:
    ledger = requests.get(f"{stack.sandbox}/_sandbox/ledger", timeout=10).json()
    ours = [row for row in ledger["withdrawals"] if row["accountNumber"] == WITHDRAWAL["account_number"]]
    return sorted(datetime.fromisoformat(row["receivedAt"]).timestamp() for row in ours)
