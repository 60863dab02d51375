"""An administrator in front of the form."""

import pytest
from django.test import Client

from backoffice.accounts.models import User
from tests.operations.conftest import SignIn


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)
