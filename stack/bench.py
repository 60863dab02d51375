"""`make bench`: the promises of size and speed in the README, measured on this machine. Nothing fails on them."""

import gzip
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin

import psutil
import requests

from payments_gateway.sandbox.wire.credentials import API_KEY, API_USER, USER_VERSIONS
from stack.browser import Browser
from stack.processes import ROOT, Stack, throwaway_sandbox, throwaway_stack
from stack.smoke import WITHDRAWAL, prepare

# What each of them opens; `operation` is one that the first of them prepares for the occasion.
PAGES = {
    "Tunde Bello": ("/operations/prepare/withdrawal/", "operation"),
    "Amara Okafor": (
        "/",
        "/operations/?tab=open",
        "/operations/?tab=done",
        "operation",
        "/reports/",
        "/account/",
    ),
    "Femi Ade": ("/audit/",),
}
NO_BROKER = "redis://127.0.0.1:9/0"
ROUNDS = 9
EXPORTED = 100_000
SEEDED = 100_000
CALLERS = 4
ASKED_FOR = 5.0  # seconds


@dataclass(frozen=True)
class Measure:
    """One line of the table. The limit is the most that the value may be, or the least."""

    what: str
    value: float
    unit: str
    limit: float
    limit_is: Literal["most", "least"] = "most"

    @property
    def is_met(self) -> bool:
        """Whether the value keeps within the limit."""
        return self.value <= self.limit if self.limit_is == "most" else self.value >= self.limit

    def __str__(self) -> str:
        verdict = "met" if self.is_met else "MISSED"
        limit = f"{'at ' + self.limit_is:<8} {self.limit:>5.0f}"
        return f"{self.what:<68} {self.value:>9.1f} {self.unit:<3}  {limit}  {verdict}"


def main() -> int:
    """Print the table and write it to bench.json."""
    measures = []
    for measure in _measures():
        print(measure, flush=True)
        measures.append(asdict(measure))
    (ROOT / "bench.json").write_text(json.dumps(measures, indent=2) + "\n")
    return 0


def _measures() -> Iterator[Measure]:
    yield from _service()
    with tempfile.TemporaryDirectory() as folder:
        yield Measure("make demo, first start after installation", _start(Path(folder)), "s", 30)
        yield Measure("make demo, second start", _start(Path(folder)), "s", 10)
    with tempfile.TemporaryDirectory() as folder, throwaway_stack(Path(folder)) as stack:
        yield Measure("Memory of all processes together", _memory(stack), "MB", 600)
        yield from _sizes(stack)
        yield Measure("Approve and send to the service, local broker, median", _latency(stack), "ms", 150)
    with _stack_without_broker() as stack:
        yield Measure("Approve and send to the service, broker down, median", _latency(stack), "ms", 3000)
    with (
        tempfile.TemporaryDirectory() as folder,
        throwaway_stack(Path(folder), transactions=EXPORTED) as stack,
    ):
        yield from _export(stack)


def _service() -> Iterator[Measure]:
    """The simulated service alone: how soon it has a long history, and how many questions one core answers then."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        throwaway_sandbox(Path(folder), transactions=SEEDED) as stack,
    ):
        seconds = time.monotonic() - began
        yield Measure(f"Service started with a new history of {SEEDED:,} transactions", seconds, "s", 20)
        keep_to_one_core(stack.processes["sandbox"].pid)
        rate = balances_per_second(f"{stack.sandbox}/v2/balance")
        yield Measure("GET /balance at the service, on one core", rate, "/s", 300, "least")


def keep_to_one_core(pid: int) -> None:
    """Let every thread of these processes, and all that they start, run on one core."""
    core = {min(os.sched_getaffinity(0))}
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        for thread in process.threads():
            os.sched_setaffinity(thread.id, core)


def balances_per_second(address: str, seconds: float = ASKED_FOR) -> float:
    """How many answers several callers get together, each asking again as soon as it has its answer."""
    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as callers:
        answers = sum(callers.map(_ask_until, [address] * CALLERS, [began + seconds] * CALLERS))
    return answers / (time.monotonic() - began)


def _ask_until(address: str, deadline: float) -> int:
    answers = 0
    with requests.Session() as session:
        session.trust_env = False  # reading netrc and proxies for each request costs more than the request
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
    with throwaway_stack(folder):
        return time.monotonic() - began


@contextmanager
def _stack_without_broker() -> Iterator[Stack]:
    extra = {"COUNTERSIGN_BROKER_URL": NO_BROKER}
    with tempfile.TemporaryDirectory() as folder, throwaway_stack(Path(folder), extra=extra) as stack:
        yield stack


def _memory(stack: Stack) -> float:
    """Megabytes that the processes hold, pages that several share counted once."""
    total = 0
    for process in stack.processes.values():
        parent = psutil.Process(process.pid)
        total += sum(one.memory_full_info().pss for one in [parent, *parent.children(recursive=True)])
    return total / 1e6


def _sizes(stack: Stack) -> Iterator[Measure]:
    """The largest page and the largest sum of a page and what it needs at once, gzipped."""
    html, critical, operation = {}, {}, ""
    for name, paths in PAGES.items():
        with Browser(stack.web) as browser:
            browser.sign_in_at_the_demo(name)
            operation = operation or prepare(browser)
            for path in paths:
                page = browser.get(operation if path == "operation" else path)
                opened = f"{path}, {name.split()[0]}"
                html[opened] = len(gzip.compress(page.content)) / 1000
                critical[opened] = html[opened] + _critical_assets(browser, page)
    yield _largest("HTML", html, 14)
    yield _largest("Critical bytes", critical, 50)


def _largest(what: str, sizes: dict[str, float], limit: float) -> Measure:
    largest = max(sizes, key=sizes.__getitem__)
    return Measure(f"{what} of the largest page ({largest})", sizes[largest], "kB", limit)


def _critical_assets(browser: Browser, page: requests.Response) -> float:
    found = set(re.findall(r'(?:src|href)="([^"]+\.(?:css|js)[^"]*)"', page.text))
    bodies = [browser.get(urljoin(page.url, address)).content for address in found]
    return sum(len(gzip.compress(body)) for body in bodies) / 1000


def _latency(stack: Stack) -> float:
    """Milliseconds from the click to the moment the service executes, the median of several operations."""
    stack.set_sandbox(token_reuse=True)
    with Browser(stack.web) as maker, Browser(stack.web) as checker:
        maker.sign_in_at_the_demo("Tunde Bello")
        checker.sign_in_at_the_demo("Amara Okafor")
        return statistics.median(_one_latency(stack, maker, checker) for _ in range(ROUNDS))


def _one_latency(stack: Stack, maker: Browser, checker: Browser) -> float:
    operation = prepare(maker)
    token = stack.service_token()
    page = checker.get(operation)
    before, clicked = len(_arrivals(stack)), time.time()
    checker.send(page, "/approve-and-send/", token=token)
    while len(arrivals := _arrivals(stack)) == before:
        time.sleep(0.01)
    return (arrivals[-1] - clicked) * 1000


def _arrivals(stack: Stack) -> list[float]:
    ledger = requests.get(f"{stack.sandbox}/_sandbox/ledger", timeout=10).json()
    ours = [row for row in ledger["withdrawals"] if row["accountNumber"] == WITHDRAWAL["account_number"]]
    return sorted(datetime.fromisoformat(row["receivedAt"]).timestamp() for row in ours)


def _export(stack: Stack) -> Iterator[Measure]:
    """A CSV of 100,000 transactions, and how much the web process grows by it."""
    web = max(psutil.Process(stack.processes["web"].pid).children(), key=lambda one: one.memory_info().rss)
    with Browser(stack.web) as browser:
        browser.sign_in_at_the_demo("Femi Ade")
        browser.get("/reports/")
        before, began = web.memory_info().rss, time.monotonic()
        with _peak(lambda: web.memory_info().rss) as peak:
            answer = browser.session.get(
                urljoin(stack.web, "/reports/transactions.csv"), stream=True, timeout=60
            )
            rows = sum(chunk.count(b"\r\n") for chunk in answer.iter_content(65536)) - 1
    yield Measure(f"Growth of the web process by a CSV of {rows:,} rows", (peak[0] - before) / 1e6, "MB", 32)
    yield Measure(f"CSV of {rows:,} transactions, read page by page", time.monotonic() - began, "s", 120)


@contextmanager
def _peak(read: Callable[[], int]) -> Iterator[list[int]]:
    """The highest value that was read while the block ran."""
    highest, done = [read()], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            highest[0] = max(highest[0], read())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield highest
    finally:
        done.set()
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
