"""One pending withdrawal, and the people around it."""

from collections.abc import Callable

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models import Operation
from tests import factories

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
