"""The form of a payment, filled in."""

import pytest

from backoffice.core import gateway as seam
from tests.operations.kinds.payments.steps import TO_BANK
from tests.sandbox_process import SandboxProcess


@pytest.fixture
def bank(sandbox: SandboxProcess) -> dict[str, str]:
    """The form filled in for a bank account, with the name that the simulated bank has."""
    client = seam.gateway(deadline=8)
    holder = client.banks.resolve(account_number="0123456789", bank_code="044")
    return {**TO_BANK, "typed_name": holder.account_name}
