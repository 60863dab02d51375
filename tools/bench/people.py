"""P10 and P12: six people in eight windows at once on one web worker, and one person among slow connections."""

import itertools
import re
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
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
_PAUSE = "/operations/pause/"
SLOW_CONNECTIONS = 200
_BEGUN = (
    b"",
    b"GET / HTTP/1.1\r\nHost: ",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf",
)
"""What a slow connection has sent: nothing, half of a header, of a body, and of a chunk."""


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
    """One of the people, and their browser."""

    name: str
    browser: HttpBrowser

    def sign_in(self) -> None:
        self.browser.sign_in(self.name)

    def work_until(self, deadline: float) -> list[float]:
        """Open the list and an operation in turn; approvers approve what waits. How long each page took, in
        milliseconds.
        """
        took: list[float] = []

        def timed(path: str) -> requests.Response:
            with _timed(took):
                return self.browser.get(path)

        visit = 0
        while time.monotonic() < deadline:
            listed = re.findall(r'class="row" href="([^"]+)"', timed(_LIST).text)
            page = timed(listed[visit % len(listed)] if listed else _LIST)
            if self.name in APPROVERS and "/approve/" in page.text and "smoke" in page.text.lower():
                with _timed(took), suppress(BrowserError):  # the other window was first
                    self.browser.submit(page, "/approve/")
            visit += 1
        return took


def _together(people: list[Person], seconds: float) -> Iterator[Measure]:
    _work(people, seconds, first_amount=1_000)  # each thread of the web process composes its queries once
    took = sorted(_work(people, seconds, first_amount=2_000))
    middle, late = statistics.median(took), took[int(0.95 * len(took))]
    what = f"{len(people)} people at once on one web worker: list, operation, approval"
    yield Measure("P10.rate", what, len(took) / seconds, "pages/s", 30, "least")
    yield Measure("P10.late", "slowest twentieth of these pages to the median", late / middle, "x", 2)


def _work(people: list[Person], seconds: float, first_amount: int) -> list[float]:
    """Let all work at once, twenty operations waiting at the beginning; how long each page took, in milliseconds."""
    for number in range(20):
        prepare(people[0].browser, Decimal(first_amount + number))
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(len(people)) as at_once:
        return [
            each for took in at_once.map(Person.work_until, people, [deadline] * len(people)) for each in took
        ]


def slow_connection_measures(pages: int) -> Iterator[Measure]:
    """The list, and the order to pause payments, while connections are open that never complete a request."""
    with (
        temporary_database("slow") as database,
        tempfile.TemporaryDirectory() as folder,
        payday_stack(database, Path(folder)) as stack,
        HttpBrowser(stack.web) as approver,
    ):
        approver.sign_in(APPROVERS[0])
        for _ in range(pages):  # each thread of the web process composes its queries once
            approver.get(_LIST)
        with _slow_connections(stack.web_port):
            lists = [_milliseconds(lambda: approver.get(_LIST)) for _ in range(pages)]
        page = approver.get(_PAUSE)
        with _slow_connections(stack.web_port):
            paused = _milliseconds(lambda: approver.submit(page, _PAUSE, reason="Measured"))
    among = f"among {SLOW_CONNECTIONS} slow connections to one web worker"
    yield Measure("P12.list", f"slowest of {pages} lists {among}", max(lists), "ms", 300)
    yield Measure("P12.pause", f"pausing payments {among}", paused, "ms", 300)


@contextmanager
def _slow_connections(port: int) -> Iterator[None]:
    """So many, all of them still open at the end. The server closes them after ten seconds."""
    with ExitStack() as opened:
        connections = []
        for begun in itertools.islice(itertools.cycle(_BEGUN), SLOW_CONNECTIONS):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            connection.sendall(begun)
            connections.append(connection)
        yield
        for connection in connections:
            connection.setblocking(False)
            with suppress(BlockingIOError):
                raise RuntimeError(f"A slow connection was closed: {connection.recv(100)!r}")


@contextmanager
def _timed(took: list[float]) -> Iterator[None]:
    """Adds how long the block took, in milliseconds."""
    began = time.monotonic()
    yield
    took.append(1000 * (time.monotonic() - began))


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return 1000 * (time.monotonic() - began)
