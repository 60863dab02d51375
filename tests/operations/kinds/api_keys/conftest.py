"""An administrator, and no scopes remembered from another test."""

from collections.abc import Callable, Iterator

import pytest
from django.core.cache import cache
from django.test import Client

from backoffice.accounts.models import User

SignIn = Callable[[Client, User], Client]


@pytest.fixture(autouse=True)
def no_scopes_remembered() -> Iterator[None]:
    """Scopes are remembered across tests."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)
