"""A bank account as the bank names its holder, in the register."""

import pytest

from backoffice.accounts.models import User
from backoffice.ledger import accounts as ledger
from backoffice.recipients.models import RecipientVersion
from tests.operations.pages.recipient_choice.steps import BANK, NUMBER
from tests.recipients import registered
from tests.sandbox_process import SandboxProcess


@pytest.fixture
def holder(sandbox: SandboxProcess) -> str:
    """The name that the provider gives for the account."""
    return ledger.resolve_account_holder(NUMBER, BANK).account_name


@pytest.fixture
def rent(preparer: User, approver: User, holder: str) -> RecipientVersion:
    """The account, approved while the bank gave the name that it still gives."""
    return registered.agreed(registered.bank_account(name=holder, alias="Rent"), preparer, approver)
