"""Reads that fill in a page, while the provider hangs: a few wait, the others are answered at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from pytest_django import Settings

from backoffice.core.gateway import PAGE_PART_TIMEOUT, PAGE_TIMEOUT, gateway
from payments_gateway import GatewayError
from tests import stub_provider
from tests.stub_provider import StubProvider
from tests.tools.test_brokers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
READS, HANGING = 20, 3


class Hanging:
    """The provider takes every question and answers when it is let go."""

    def __init__(self, stub: StubProvider) -> None:
        self.stub, self.go = stub, threading.Event()
        self.refused, self.answered = list[str](), list[str]()
        stub.before_get = lambda: self.go.wait(60)

    def read(self, patience: float) -> None:
        try:
            self.answered.append(gateway(deadline=patience).callbacks.url())
        except GatewayError as exc:
            self.refused.append(exc.message)
        finally:
            connection.close()


@contextmanager
def at_once(hanging: Hanging, number: int) -> Iterator[None]:
    """So many pages wait in the block, as many as may before the provider; it lets them go at the end."""
    threads = [threading.Thread(target=hanging.read, args=(PAGE_TIMEOUT,)) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(hanging.stub.keys_shown) == HANGING)
        yield
    finally:
        hanging.go.set()
        for thread in threads:
            thread.join(120)


@pytest.fixture
def hanging(settings: Settings) -> Iterator[Hanging]:
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        provider = Hanging(stub)
        try:
            yield provider
        finally:
            provider.go.set()


def test_reads_beyond_the_limit_fail_fast_while_the_provider_hangs(hanging: Hanging) -> None:
    with at_once(hanging, READS):
        wait_until(lambda: len(hanging.refused) >= READS - HANGING)
        refused = [message for message in hanging.refused if "so it was not asked" in message]
        assert (len(refused), len(hanging.stub.keys_shown)) == (READS - HANGING, HANGING)


def test_partial_reads_share_the_limit(hanging: Hanging) -> None:
    with at_once(hanging, HANGING):
        hanging.read(PAGE_PART_TIMEOUT)
        assert "so it was not asked" in hanging.refused[0]


def test_the_slot_is_released_after_the_read(hanging: Hanging) -> None:
    hanging.go.set()
    for _ in range(2 * HANGING):
        hanging.read(PAGE_TIMEOUT)
    assert (len(hanging.answered), hanging.refused) == (2 * HANGING, [])


def test_sends_and_status_checks_are_not_limited(hanging: Hanging) -> None:
    with at_once(hanging, HANGING):
        other = threading.Thread(target=hanging.read, args=(20.0,))
        other.start()
        wait_until(lambda: len(hanging.stub.keys_shown) == HANGING + 1)
    other.join(120)
    assert len(hanging.answered) == HANGING + 1
