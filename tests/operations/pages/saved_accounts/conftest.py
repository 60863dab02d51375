"""An account as the bank names its holder, saved by the team."""

import pytest

from backoffice.accounts.models import User
from backoffice.ledger import accounts as ledger
from backoffice.operations.models.saved_items import SavedAccount
from tests.operations.pages.saved_accounts.steps import BANK, NUMBER, saved
from tests.sandbox_process import SandboxProcess


@pytest.fixture
def holder(sandbox: SandboxProcess) -> str:
    """The name that the provider gives for the account."""
    return ledger.resolve_account_holder(NUMBER, BANK).account_name


@pytest.fixture
def rent(preparer: User, holder: str) -> SavedAccount:
    """The account, saved while the bank gave the name that it still gives."""
    return saved(preparer, "Rent", account_name=holder)
