"""The people who read it, and a matched withdrawal beside an unrecognised transaction."""

from collections.abc import Callable

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import Attempt
from backoffice.operations.reconciliation import runner
from backoffice.operations.reconciliation.runner import reconcile
from tests.operations.reconciliation.steps import listed, sent


@pytest.fixture(autouse=True)
def to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call compares everything, however slow the machine is."""
    monkeypatch.setattr(runner, "TIME_BUDGET_SECONDS", 3600.0)


@pytest.fixture
def as_auditor(sign_in: Callable[[Client, User], Client], auditor: User) -> Client:
    return sign_in(Client(), auditor)


@pytest.fixture
def matched(preparer: User) -> Attempt:
    attempt = sent(preparer, "T-1")
    listed("T-1")
    return attempt


@pytest.fixture
def unknown_movement(matched: Attempt) -> Transaction:
    row = listed("X-1", counterparty="<b>Somebody</b>")
    reconcile()
    return row
