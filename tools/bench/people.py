"""P10: eight people at once on one web worker."""

import itertools
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import requests

from tools.bench.databases import temporary_database
from tools.bench.measure import Measure
from tools.bench.payday import payday_stack
from tools.bench.product import pin_to_one_core
from tools.browser import BrowserError, HttpBrowser
from tools.smoke import prepare

PEOPLE = ("Tunde Bello", "Ngozi Eze", "Amara Okafor", "Chidi Nwosu", "Femi Ade", "Zainab Musa")
APPROVERS = IN_TWO_WINDOWS = ("Amara Okafor", "Chidi Nwosu")
_LIST = "/operations/"


def people_measures(seconds: float) -> Iterator[Measure]:
    """On PostgreSQL, with a provider that asks for no one-time code."""
    with (
        temporary_database("people") as database,
        tempfile.TemporaryDirectory() as folder,
        payday_stack(database, Path(folder)) as stack,
        ExitStack() as browsers,
    ):
        pin_to_one_core(stack.processes["web"].pid)
        people = [Person(name, browsers.enter_context(HttpBrowser(stack.web))) for name in PEOPLE]
        for person in people:
            person.sign_in()
        for name in IN_TWO_WINDOWS:
            [session] = [person.browser.session for person in people if person.name == name]
            people.append(Person(name, HttpBrowser(stack.web, session)))
        yield from _together(people, seconds)


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
        for visit in itertools.count():
            listed = re.findall(r'class="row" href="([^"]+)"', self._timed(_LIST).text)
            page = self._timed(listed[visit % len(listed)] if listed else _LIST)
            if self.name in APPROVERS and "/approve/" in page.text and "smoke" in page.text.lower():
                began = time.monotonic()
                with suppress(BrowserError):  # the other window was first
                    self.browser.submit(page, "/approve/")
                self.took.append(1000 * (time.monotonic() - began))
            if time.monotonic() >= deadline:
                return

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
