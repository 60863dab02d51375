"""A browser without a session, and the codes that people read from their phones."""

from collections.abc import Callable

import pytest
from django.test import Client

from backoffice.accounts.models import User
from tests.accounts import steps


@pytest.fixture
def password_only(client: Client, preparer: User) -> Client:
    """The preparer has given the password and nothing else."""
    steps.give_password(client, preparer)
    return client


@pytest.fixture
def newcomer(db: None) -> User:
    """Somebody who has just chosen a password by the one-time link, and has no authenticator."""
    return steps.newcomer()


@pytest.fixture
def signed_in(client: Client, preparer: User, sign_in: Callable[[Client, User], Client]) -> Client:
    """The preparer, with password and second factor given a moment ago."""
    return sign_in(client, preparer)
