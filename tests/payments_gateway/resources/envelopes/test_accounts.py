"""Accounts that were opened, and the list of them."""

from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import OutcomeUnknownError, ReadFailedError
from payments_gateway.profile.model import PROFILES
from tests.payments_gateway.resources.envelopes.conftest import Answered

OPENED = {
    "account_name": "Ada Ltd",
    "account_number": "0123456789",
    "bank_code": "044",
    "bank_name": "Access Bank",
    "currency": "NGN",
    "status": "ACTIVE",
}


@pytest.mark.parametrize("data", [[OPENED], OPENED])
def test_opened_accounts_are_a_list(answered: Answered, data: object) -> None:
    (account,) = answered("accounts.create", {"data": data, "message": "created"})
    assert account.model_dump() == OPENED | {"provider_message": "created"}


@pytest.mark.parametrize("data", [None, "x", [1], [[]]])
def test_an_unreadable_opened_account_leaves_the_outcome_unknown(answered: Answered, data: object) -> None:
    with pytest.raises(OutcomeUnknownError):
        answered("accounts.create", {"data": data})


@pytest.mark.parametrize("data", [{}, [], [{}]])
def test_an_empty_account_is_ignored(answered: Answered, data: object) -> None:
    assert answered("accounts.create", {"data": data, "message": "created"}) == []


ASSET = {"id": "0123456789", "type": "bank", "balance": "10.50"}


@pytest.mark.parametrize(
    "accounts",
    [
        [{"accountName": "Ada", "assets": [ASSET | {"currency": "NGN"}]}],
        [{"accountName": "Ada", "assets": {"NGN": ASSET}}],
    ],
)
@pytest.mark.parametrize("is_bare", [True, False])
def test_accounts_are_a_list_or_a_field(answered: Answered, accounts: list[Any], is_bare: bool) -> None:
    (account,) = answered("accounts.list", {"data": accounts if is_bare else {"accounts": accounts}})
    (asset,) = account.assets
    assert (account.account_name, asset.currency, asset.address) == ("Ada", "NGN", "0123456789")
    assert (asset.type, asset.balance) == ("bank", Decimal("10.50"))


def test_an_account_may_have_no_currencies(answered: Answered) -> None:
    (account,) = answered("accounts.list", {"data": [{"accountName": "Ada", "assets": []}]})
    assert account.assets == ()


def test_accounts_by_currency_are_read_in_both_profiles(answered: Answered) -> None:
    asset = {"balance": 5, "pendingDebit": "1.50", "accountNumber": "0123456789"}
    for profile in PROFILES.values():
        body = {"data": {"NGN": {"asset": [asset]}, "KES": {"asset": []}}}
        (account,) = answered("accounts.list", body, profile=profile)
        (read,) = account.assets
        assert (account.account_name, read.currency, read.address) == ("", "NGN", "0123456789")
        assert (read.balance, read.pending_debit) == (5, Decimal("1.50"))


def test_an_empty_object_means_no_account_only_where_accounts_are_a_map(answered: Answered) -> None:
    assert answered("accounts.list", {"data": {}}, profile=PROFILES["published"]) == []
    with pytest.raises(ReadFailedError, match="none of accounts, data is a list"):
        answered("accounts.list", {"data": {}})


@pytest.mark.parametrize(
    "account",
    [
        {"assets": [{"currency": "NGN", "id": "64fb1c0aa1", "accountNumber": "0123456789"}]},
        {"NGN": {"assets": [{"currency": "USD", "id": "0123456789"}]}},
        {"assets": [], "asset": [{"currency": "NGN", "id": "0123456789"}]},
    ],
    ids=["two numbers", "two currencies", "two lists"],
)
def test_an_account_that_contradicts_itself_is_refused(answered: Answered, account: dict[str, Any]) -> None:
    data = [account | {"accountName": "Shop"}] if "assets" in account else account
    with pytest.raises(ReadFailedError, match="contradict each other"):
        answered("accounts.list", {"data": data})


def test_an_empty_number_gives_way_to_another(answered: Answered) -> None:
    asset = {"currency": "NGN", "id": "", "accountNumber": "0123456789"}
    (account,) = answered("accounts.list", {"data": [{"accountName": "Shop", "assets": [asset]}]})
    assert account.assets[0].address == "0123456789"


@pytest.mark.parametrize(
    "account",
    [
        {},
        {"accountName": "Ada"},
        {"assets": []},
        {"accountName": "", "assets": []},
        {"accountName": " ", "assets": []},
    ],
)
def test_an_account_with_neither_name_nor_assets_is_refused(answered: Answered, account: object) -> None:
    with pytest.raises(
        ReadFailedError,
        match=r"none of .*assets.* is present|an account has neither accountName nor anything in assets",
    ):
        answered("accounts.list", {"data": [account]})


@pytest.mark.parametrize(
    "data",
    [None, {}, {"accounts": {}}, [1], [{"assets": 1}], [{"assets": [1]}], [{"assets": [{"balance": "x"}]}]],
)
def test_a_malformed_account_list_is_refused(answered: Answered, data: object) -> None:
    with pytest.raises(ReadFailedError):
        answered("accounts.list", {"data": data})
