"""What a conversion or a transfer is reported to have done, nested or not."""

from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import OutcomeUnknownError, TransferDetail
from tests.payments_gateway.calls import DETAIL, DONE, WALLET_DETAIL
from tests.payments_gateway.resources.envelopes.conftest import Answered


@pytest.mark.parametrize("name", ["balances.convert", "balances.transfer"])
@pytest.mark.parametrize("data", [DETAIL, {"transferDetail": DETAIL}], ids=["directly", "nested"])
def test_a_transfer_is_read_nested_or_flat(answered: Answered, name: str, data: dict[str, Any]) -> None:
    detail = answered(name, {**DONE, "data": data})
    assert isinstance(detail, TransferDetail)
    assert (detail.transaction_id, detail.status, detail.date) == ("T1", "fulfilled", "2025-11-21")
    assert (detail.amount, detail.receive_amount) == (Decimal("1500.50"), Decimal("1.00"))
    assert (detail.from_currency, detail.to_currency) == ("NGN", "USD")
    assert (detail.sender, detail.username) == ("acme", "ada")
    assert detail.sender_previous_balance == Decimal("2000.00")
    assert detail.raw == data


@pytest.mark.parametrize("data", [WALLET_DETAIL, {"transferDetail": WALLET_DETAIL}])
def test_a_wallet_transfer_is_read_nested_or_flat(answered: Answered, data: dict[str, Any]) -> None:
    detail = answered("wallets.transfer", {**DONE, "data": data})
    assert (detail.transaction_id, detail.status, detail.type) == ("T1", "fulfilled", "transfer")
    assert (detail.amount, detail.receive_amount) == (Decimal(2), Decimal("1.5"))
    assert (detail.address, detail.memo) == ("T9yD", "m")


@pytest.mark.parametrize("name", ["balances.convert", "balances.transfer", "wallets.transfer"])
@pytest.mark.parametrize(
    "change",
    [
        {"amount": "1,000.00"},
        {"amount": None},
        {"amount": ""},
        {"amount": [1]},
        {"amount": "9" * 30},
        {"status": None, "date": {"y": 1}, "sender": ["x"], "username": 5, "memo": True, "news": {"a": 1}},
        {"toCurrency": None},
    ],
)
def test_a_success_with_unreadable_details_is_a_success(
    answered: Answered, name: str, change: dict[str, Any]
) -> None:
    detail = answered(name, {**DONE, "data": DETAIL | change})
    assert detail.transaction_id == "T1"
    assert detail.raw == DETAIL | change


@pytest.mark.parametrize("name", ["balances.convert", "balances.transfer", "wallets.transfer"])
def test_a_success_without_details_is_a_success(answered: Answered, name: str) -> None:
    detail = answered(name, {**DONE, "data": {}})
    assert (detail.transaction_id, detail.status, detail.amount) == (None, "", None)


@pytest.mark.parametrize("body", [DONE, {**DONE, "data": []}, {**DONE, "data": "yes"}, {**DONE, "data": 1}])
@pytest.mark.parametrize(
    "name",
    ["balances.convert", "balances.transfer", "wallets.transfer", "payments.create", "api_keys.create"],
)
def test_a_success_without_an_object_proves_nothing(
    answered: Answered, name: str, body: dict[str, Any]
) -> None:
    with pytest.raises(OutcomeUnknownError):
        answered(name, body)
