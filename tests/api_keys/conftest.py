"""An administrator who proposes and an approver who approves, against the sandbox."""

from collections.abc import Callable

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from tests.api_keys import steps
from tests.sandbox_process import SandboxProcess

SignIn = Callable[[Client, User], Client]


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)


@pytest.fixture
def as_approver(sign_in: SignIn, approver: User) -> Client:
    return sign_in(Client(), approver)


@pytest.fixture
def relaxed(sandbox: SandboxProcess) -> SandboxProcess:
    """The provider, which accepts one one-time code several times, so that no test has to wait for the next."""
    sandbox.options(token_reuse=True)
    return sandbox


@pytest.fixture
def created(as_administrator: Client, approver: User, relaxed: SandboxProcess) -> Operation:
    """A key that the provider made and that is encrypted here, for the approver who had it sent."""
    return steps.approve_and_send(
        steps.prepare(as_administrator, "api_key_create", **steps.NAMED), approver, relaxed
    )
