"""Operations whose outcome the provider's list has to show."""

import pytest

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome.confirmation import listing_delay
from tests.operations.provider_list import sent, shows
from tests.operations.steps import let_pass
from tests.stub_provider import StubProvider


@pytest.fixture
def provider(provider: StubProvider) -> StubProvider:
    """One whose list has an old withdrawal only."""
    shows(provider)
    return provider


@pytest.fixture
def unknown(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """One whose answer was lost long enough ago for every transaction that could be meant to be in the list."""
    operation = sent(provider, preparer, approver, (502, "bad gateway"))
    let_pass(listing_delay())
    return operation


@pytest.fixture
def accepted(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """One that the provider accepted without a name as long ago."""
    operation = sent(provider, preparer, approver, (200, '{"data": {}}'))
    let_pass(listing_delay())
    return operation


@pytest.fixture
def processing(provider: StubProvider, preparer: User, approver: User) -> Operation:
    return sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-1"}}'))
