"""Somebody who may read transactions and prepares none."""

import pytest
from django.test import Client

from backoffice.accounts.models import User
from tests.operations.conftest import SignIn


@pytest.fixture
def reader(client: Client, sign_in: SignIn, auditor: User) -> Client:
    return sign_in(client, auditor)
