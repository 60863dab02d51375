"""P11: a file of thousands of withdrawals: server time, memory and pages from its check to the order to send it."""

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.bench.databases import BenchDatabase, temporary_database
from tools.bench.measure import Measure
from tools.bench.payday import COLUMNS, payday_row
from tools.processes import Stack, free_port

SECONDS = 30.0  # to check, store and approve, and to make the rows operations
GROWTH = 64.0  # MiB, of any process
PAGE_SECONDS = 0.3
_PAGES = {
    "batch": "the page of the batch",
    "rows": "its rows",
    "list": "the list of operations",
    "send": "the page that confirms to send all of it",
    "progress": "the progress of sending it",
}


def payout_measures(rows: int) -> Iterator[Measure]:
    """On PostgreSQL, by one process at a time; the time of the provider's answers is not counted."""
    with (
        temporary_database("payouts") as database,
        tempfile.TemporaryDirectory() as folder,
        _provider_and_database(database, Path(folder)) as stack,
    ):
        yield from _steps(stack, rows)
        yield from _pages(stack, rows)


@contextmanager
def _provider_and_database(database: BenchDatabase, folder: Path) -> Iterator[Stack]:
    """The simulated provider and the demo's database, without the processes that would take the work up themselves."""
    extra = {"COUNTERSIGN_DATABASE_URL": database.url, "COUNTERSIGN_LOG_LEVEL": "WARNING"}
    stack = Stack(folder, free_port(), free_port(), extra, 0.0, 300, profile="published")
    try:
        stack.start_sandbox()
        stack.webhook_keys.write_text(stack.webhook_public_keys())
        stack.manage("prepare_demo")
        yield stack
    finally:
        stack.stop()


def _run(stack: Stack, function: str, **arguments: Any) -> dict[str, Any]:
    module = ("-m", "tools.inside_django", "tools.bench.payouts.process")
    found: dict[str, Any] = json.loads(
        stack.python(*module, function, json.dumps(arguments)).splitlines()[-1]
    )
    return found


def _steps(stack: Stack, rows: int) -> Iterator[Measure]:
    path = stack.folder / "payday.csv"
    path.write_text(_file(rows))
    texts = {
        "check": f"{rows:,} withdrawals of a file checked",
        "store": "stored as a batch",
        "approve": "the batch approved",
        "create": "its rows made operations",
    }
    costs = []
    for name, what in texts.items():
        cost = _run(stack, name, **({"path": str(path)} if name == "check" else {}))
        costs.append(cost)
        note = f"{cost['processor']:.1f} s of them in Python, {cost['queries']:,} queries"
        yield Measure(f"P11.{name}", what, cost["seconds"], "s", note=note)
    total = sum(cost["seconds"] for cost in costs)
    yield Measure("P11.seconds", "all of this together", total, "s", SECONDS)
    growth = max(cost["growth"] for cost in costs)
    yield Measure("P11.memory", "growth of any process meanwhile", growth, "MiB", GROWTH)


def _pages(stack: Stack, rows: int) -> Iterator[Measure]:
    found = _run(stack, "pages")
    for name, what in _PAGES.items():
        cost = found[name]
        size = f"{cost['queries']} queries, {cost['bytes'] / 1000:.1f} kB, {cost['growth']:.1f} MiB"
        note = f"{1000 * cost['processor']:.0f} ms of them in Python, {size}"
        yield Measure(f"P11.{name}", what, 1000 * cost["seconds"], "ms", 1000 * PAGE_SECONDS, note=note)
    confirmed = found["confirmed"]
    note = f"{confirmed['queries']} queries, {confirmed['growth']:.1f} MiB"
    yield Measure("P11.confirmed", f"sending all {rows:,} confirmed", confirmed["seconds"], "s", note=note)
    growth = max(cost["growth"] for cost in found.values())
    yield Measure("P11.web", "growth of a web process by any of these pages", growth, "MiB", GROWTH)


def _file(rows: int) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for number in range(rows):
        writer.writerow(payday_row(number) | {"currency": "NGN", "amount": f"{_amount(number)}.00"})
    return text.getvalue()


def _amount(number: int) -> int:
    """So low that all rows together need one approval only."""
    return 1000 + number % 500
