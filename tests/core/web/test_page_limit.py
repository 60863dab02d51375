"""How many pages a process makes at once: the next ones wait in their order, and one that waits for the provider does
not count.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from django.conf import settings as configured
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from pytest_django import Settings

from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.core.web import page_limit
from backoffice.core.web.page_limit import PageLimit, PageLimitMiddleware
from payments_gateway import GatewayError
from tests import stub_provider
from tests.tools.test_brokers import wait_until

LIMIT = 2


class Pages:
    """Pages of one process with room for `LIMIT`: each stays in the making until it may end."""

    def __init__(self) -> None:
        self.limit = PageLimit(LIMIT)
        self.begun: list[int] = []
        self._may_end = [threading.Event() for _ in range(6)]
        self._threads: list[threading.Thread] = []

    def request(self, number: int, make: Callable[[], None] = lambda: None) -> None:
        """Request this page. `make` runs while it is made."""

        def run() -> None:
            with self.limit.page():
                self.begun.append(number)
                make()
                self._may_end[number].wait(30)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self._may_end[number].set()

    def has_begun(self, *numbers: int) -> None:
        """Assert that exactly these have begun, in this order."""
        wait_until(lambda: len(self.begun) >= len(numbers))
        assert self.begun == list(numbers)

    def waits(self, number: int) -> None:
        """Assert that so many requests wait."""
        wait_until(lambda: len(self.limit._waiting) == number)

    def join(self) -> None:
        self.end(*range(len(self._may_end)))
        for thread in self._threads:
            thread.join(30)


@pytest.fixture
def pages() -> Iterator[Pages]:
    made = Pages()
    try:
        yield made
    finally:
        made.join()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> PageLimit:
    """The limit of the process, with room for one page."""
    limit = PageLimit(1)
    monkeypatch.setattr(page_limit, "_limit", limit)
    return limit


def test_further_requests_wait_and_begin_in_their_order(pages: Pages) -> None:
    for number in range(LIMIT):
        pages.request(number)
        pages.has_begun(*range(number + 1))
    for number in range(LIMIT, 5):
        pages.request(number)
        pages.waits(number + 1 - LIMIT)
    pages.end(1)
    pages.has_begun(0, 1, 2)
    pages.end(2)
    pages.has_begun(0, 1, 2, 3)
    pages.end(0)
    pages.has_begun(0, 1, 2, 3, 4)


def test_a_page_that_fails_makes_room_for_the_next(pages: Pages) -> None:
    for _ in range(LIMIT + 1):
        with pytest.raises(ZeroDivisionError), pages.limit.page():
            _ = 1 / 0
    pages.request(0)
    pages.has_begun(0)


def test_another_page_is_made_while_one_waits_for_the_provider(pages: Pages) -> None:
    answered = threading.Event()

    def wait_for_provider() -> None:
        with pages.limit.not_counted():
            answered.wait(30)

    pages.request(0, wait_for_provider)
    pages.request(1)
    pages.request(2)
    wait_until(lambda: sorted(pages.begun) == [0, 1, 2])
    answered.set()
    wait_until(lambda: pages.limit._count == LIMIT + 1)  # it goes on at once, although there is no room
    pages.request(3)
    pages.waits(1)
    pages.end(0)
    pages.waits(1)
    pages.end(1)
    wait_until(lambda: 3 in pages.begun)


def test_a_background_job_is_not_counted(pages: Pages) -> None:
    with pages.limit.not_counted():
        pass
    assert pages.limit._count == 0


def test_the_middleware_counts_a_page_until_it_is_ready(full: PageLimit) -> None:
    counted: list[int] = []

    def view(_request: HttpRequest) -> HttpResponseBase:
        counted.append(full._count)
        return HttpResponse()

    PageLimitMiddleware(view)(HttpRequest())
    assert (counted, full._count) == ([1], 0)


def test_a_file_is_not_counted_while_it_is_read(full: PageLimit) -> None:
    def rows() -> Iterator[bytes]:
        counted.append(full._count)
        yield b"row"

    counted: list[int] = []
    response = PageLimitMiddleware(lambda _request: StreamingHttpResponse(rows()))(HttpRequest())
    assert isinstance(response, StreamingHttpResponse)
    assert (list(response), counted) == ([b"row"], [0])


def test_deliveries_and_probes_do_not_wait_for_pages() -> None:
    order = [path.rpartition(".")[2] for path in configured.MIDDLEWARE]
    limit = order.index("PageLimitMiddleware")
    assert max(map(order.index, ("HealthMiddleware", "WhiteNoiseMiddleware", "DeliveryMiddleware"))) < limit
    assert limit < order.index("SessionMiddleware")


@pytest.mark.django_db
def test_a_page_that_reads_from_the_provider_is_not_counted(settings: Settings) -> None:
    counted: list[int] = []
    with stub_provider.running() as stub, page_limit._limit.page():
        before = page_limit._limit._count
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        stub.before_get = lambda: counted.append(page_limit._limit._count)
        with suppress(GatewayError):
            gateway(deadline=PAGE_TIMEOUT).callbacks.url()
        assert (counted, page_limit._limit._count) == ([before - 1], before)
