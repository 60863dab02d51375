"""One pending withdrawal, and the people around it."""

from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from tests import factories, stub_provider
from tests.operations.unknown_outcomes import in_review, lost
from tests.stub_provider import StubProvider

SignIn = Callable[[Client, User], Client]


@pytest.fixture
def operation(maker: User) -> Operation:
    return factories.prepared(maker)


@pytest.fixture
def as_checker(sign_in: SignIn, checker: User) -> Client:
    return sign_in(Client(), checker)


@pytest.fixture
def as_maker(sign_in: SignIn, maker: User) -> Client:
    return sign_in(Client(), maker)


@pytest.fixture
def service(settings: Settings) -> Iterator[StubProvider]:
    """A service that answers as the test tells it."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


@pytest.fixture
def released(maker: User, checker: User) -> Operation:
    """A withdrawal that a second person countersigned and gave the word to send."""
    return factories.release(factories.approved(maker, checker), checker)


@pytest.fixture
def unknown(service: StubProvider, maker: User, checker: User) -> Operation:
    """A withdrawal that was sent and whose answer cannot be read."""
    return lost(service, maker, checker)


@pytest.fixture
def review(unknown: Operation) -> Operation:
    """The same when the machine has given up, and left it to people."""
    return in_review(unknown)
