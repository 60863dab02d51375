"""P10: eight people at once on one web worker, and pages and sweeps while ten thousand releases wait."""

import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import requests

from tools.bench.databases import temporary_database
from tools.bench.measure import Measure, Sample, sampled
from tools.bench.payday import Payday, payday_stack
from tools.bench.product import pin_to_one_core
from tools.browser import HttpBrowser
from tools.processes import Stack
from tools.smoke import prepare

PEOPLE = (
    *("Tunde Bello", "Ngozi Eze", "Amara Okafor", "Chidi Nwosu", "Femi Ade", "Zainab Musa"),
    *("Amara Okafor", "Chidi Nwosu"),  # from a second browser
)
APPROVERS = {"Amara Okafor", "Chidi Nwosu"}
IN_A_BATCH = 5_000
_LIST = "/operations/"
_ROUNDS = 15
_SWEEP = """
import time
from backoffice.operations import jobs
for job in (jobs.release_due, jobs.expire_due, jobs.send_due):
    job()
began = time.monotonic()
jobs.expire_due(); jobs.release_due(); jobs.send_due()
print(f"took {1000 * (time.monotonic() - began):.1f} ms")
"""


def people_measures(seconds: float, waiting: int) -> Iterator[Measure]:
    """On PostgreSQL, with a provider that asks for no one-time code."""
    with (
        temporary_database("people") as database,
        tempfile.TemporaryDirectory() as folder,
        payday_stack(database, Path(folder)) as stack,
        ExitStack() as browsers,
    ):
        pin_to_one_core(stack.processes["web"].pid)
        people = [Person(name, browsers.enter_context(HttpBrowser(stack.web))) for name in PEOPLE]
        with ThreadPoolExecutor(len(people)) as at_once:
            list(at_once.map(Person.sign_in, people))
        yield from _together(people, seconds)
        yield from _while_releases_wait(stack, people, waiting)


@dataclass
class Person:
    """One of the people, their browser, and how long each page took, in milliseconds."""

    name: str
    browser: HttpBrowser
    took: list[float] = field(default_factory=list)

    def sign_in(self) -> None:
        self.browser.sign_in(self.name)

    def work_until(self, deadline: float) -> None:
        """Open the list and an operation in turn; approvers approve what waits."""
        chance = random.Random(self.name)  # noqa: S311 - the same every time, no secret
        while time.monotonic() < deadline:
            listed = re.findall(r'class="row" href="([^"]+)"', self._timed(_LIST).text)
            page = self._timed(chance.choice(listed))
            if self.name in APPROVERS and "/approve/" in page.text and "smoke" in page.text.lower():
                began = time.monotonic()
                self.browser.submit(page, "/approve/")
                self.took.append(1000 * (time.monotonic() - began))

    def _timed(self, path: str) -> requests.Response:
        began = time.monotonic()
        page = self.browser.get(path)
        self.took.append(1000 * (time.monotonic() - began))
        return page


def _together(people: list[Person], seconds: float) -> Iterator[Measure]:
    for number in range(20):
        prepare(people[0].browser, Decimal(1_000 + number))
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(len(people)) as at_once:
        list(at_once.map(Person.work_until, people, [deadline] * len(people)))
    took = sorted(each for person in people for each in person.took)
    middle, late = statistics.median(took), took[int(0.95 * len(took))]
    what = f"{len(people)} people at once on one web worker: list, operation, approval"
    yield Measure("P10.rate", what, len(took) / seconds, "pages/s", 30, "least")
    yield Measure("P10.late", "slowest twentieth of these pages to the median", late / middle, "x", 2)


def _while_releases_wait(stack: Stack, people: list[Person], waiting: int) -> Iterator[Measure]:
    preparer, approver = people[0].browser, people[2].browser
    pages = {"overview": "/", "list": "/operations/?tab=waiting", "system": "/settings/system/"}
    reader = people[5].browser
    before = {name: _median_ms(reader, path) for name, path in pages.items()}
    payday = Payday(stack, preparer, approver, min(waiting, IN_A_BATCH))
    with payday.slow_provider(2.0):
        orders = [
            payday.release_batch(Decimal(1_000 + 10_000 * number))
            for number in range(max(1, waiting // IN_A_BATCH))
        ]
        for name, path in pages.items():
            took = _median_ms(reader, path)
            yield Measure(
                f"P10.{name}", f"{name} while {waiting:,} releases wait, to before", took / before[name], "x", 1.3,
                note=f"{took:.0f} ms, before {before[name]:.0f} ms",
            )  # fmt: skip
        yield sampled(
            "P10.progress",
            "progress page of their bulk release",
            Sample([_median_ms(approver, orders[-1])]),
            "ms",
            150,
        )
        printed = re.search(
            r"took ([\d.]+) ms", stack.manage("shell", "--verbosity", "0", "--command", _SWEEP)
        )
        yield Measure(
            "P10.sweep",
            "one round of the jobs that release, send and expire",
            float(printed[1] if printed else "nan"),
            "ms",
            100,
        )


def _median_ms(browser: HttpBrowser, path: str) -> float:
    browser.get(path)
    took = []
    for _ in range(_ROUNDS):
        began = time.monotonic()
        browser.get(path)
        took.append(1000 * (time.monotonic() - began))
    return statistics.median(took)
