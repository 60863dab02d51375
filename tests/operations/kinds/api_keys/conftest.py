"""An administrator, and no scopes remembered from another test."""

from collections.abc import Callable

import pytest
from django.test import Client

from backoffice.accounts.models import User

SignIn = Callable[[Client, User], Client]


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)
