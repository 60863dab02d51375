"""POST /bank/resolve."""

import pytest
import requests

from payments_gateway import BANKS
from tests.sandbox.conftest import SandboxClient


def resolve(
    provider: SandboxClient, account_number: object = "0123456789", bank_code: object = "044"
) -> requests.Response:
    return provider.post("/bank/resolve", {"accountNumber": account_number, "bankCode": bank_code})


def test_the_same_account_always_has_the_same_holder(provider: SandboxClient) -> None:
    assert resolve(provider).json() == resolve(provider).json()


def test_accounts_have_different_holders(provider: SandboxClient) -> None:
    numbers = [f"{number:010d}" for number in range(1, 41)]
    holders = {resolve(provider, number).json()["data"]["accountname"] for number in numbers}
    assert len(holders) > 25
    assert all(name == name.upper() and len(name.split()) >= 2 for name in holders)


@pytest.mark.parametrize("bank_code", BANKS)
def test_every_known_bank_answers(provider: SandboxClient, bank_code: str) -> None:
    assert resolve(provider, bank_code=bank_code).json()["data"]["code"] == bank_code


def test_some_accounts_do_not_exist(provider: SandboxClient) -> None:
    response = resolve(provider, "0123450000")
    assert response.status_code == 404
    assert response.json() == {"success": False, "message": "there is no account 0123450000 at Access Bank"}
