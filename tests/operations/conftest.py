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
def operation(preparer: User) -> Operation:
    return factories.prepared(preparer)


@pytest.fixture
def as_approver(sign_in: SignIn, approver: User) -> Client:
    return sign_in(Client(), approver)


@pytest.fixture
def as_preparer(sign_in: SignIn, preparer: User) -> Client:
    return sign_in(Client(), preparer)


@pytest.fixture
def provider(settings: Settings) -> Iterator[StubProvider]:
    """A provider that answers as the test says."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


@pytest.fixture
def released(preparer: User, approver: User) -> Operation:
    """A withdrawal that a second person approved and released."""
    return factories.release(factories.approved(preparer, approver), approver)


@pytest.fixture
def unknown(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A withdrawal that was sent and whose answer cannot be read."""
    return lost(provider, preparer, approver)


@pytest.fixture
def review(unknown: Operation) -> Operation:
    """The same in review, after the automatic checks stopped."""
    return in_review(unknown)
