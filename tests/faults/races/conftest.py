"""Fixtures of the races: two people or two processes act at the same moment. One wins, and the record shows
one.

Each race runs 20 times in the sample, 1,000 times in the whole campaign, or `RACE_ROUNDS` times.
"""

import itertools
import os
from collections.abc import Iterator
from unittest import mock

import pytest
from django.core.cache import cache
from kombu import Connection
from kombu.pools import producers
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.celery import app
from backoffice.core import clock
from backoffice.operations.models.operations import Attempt, Operation
from tests import factories, stub_provider
from tests.faults.conftest import SIZE
from tests.faults.harness.figures import FIGURES
from tests.faults.races.racing import Racers, assert_sent_once_at_most, broken_rules
from tests.stub_provider import StubProvider

ROUNDS = int(os.environ.get("RACE_ROUNDS", "1000" if SIZE == "whole" else "20"))


@pytest.fixture
def provider(settings: Settings) -> Iterator[StubProvider]:
    """A provider that creates a new transaction for each request."""
    cache.clear()
    numbers = itertools.count(1)
    in_memory = mock.patch.object(app.amqp, "_producer_pool", producers[Connection("memory://")])
    with stub_provider.running() as stub, in_memory:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        stub.answer_post = lambda: (200, f'{{"data": {{"transactionId": "T-{next(numbers)}"}}}}')
        yield stub


class Races(Racers):
    """The rounds of one race, and what must hold after each and after all of them."""

    def __init__(self, provider: StubProvider, name: str) -> None:
        super().__init__()
        self._service = provider
        self._name = name
        self._all: list[Operation] = []

    def rounds(self) -> Iterator[int]:
        """The rounds, each with a ledger of its own."""
        for number in range(ROUNDS):
            self._service.posts.clear()
            yield number
            FIGURES.cells[f"races: {self._name}"] += 1

    def are_well(self, *operations: Operation) -> None:
        """After a round: at most one debit each, and every transition recorded once, as the table allows."""
        assert_sent_once_at_most(operations, self._service)
        assert broken_rules(operations, "unrecorded_transition") == {}
        self._all.extend(operations)

    def ended_well(self) -> None:
        """After all rounds: all integrity checks, and the whole audit log.

        No sweeper runs here, so checks that are due since an early round are first set to be due now.
        """
        overdue = Attempt.objects.filter(next_check_at__lt=clock.now())
        overdue.update(next_check_at=clock.now())
        factories.record_rights()
        assert broken_rules(self._all) == {}


@pytest.fixture
def races(provider: StubProvider, request: pytest.FixtureRequest) -> Iterator[Races]:
    with Races(provider, request.node.name.removeprefix("test_").replace("_", " ")) as races:
        yield races


@pytest.fixture
def third_checker(db: None) -> User:
    return factories.person("Ngozi Eze", Role.APPROVER)
