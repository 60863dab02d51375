"""POST /balance/transfer."""

from decimal import Decimal

import pytest
import requests

from tests.sandbox.books.test_convert import DETAIL
from tests.sandbox.conftest import SandboxClient

WRONG = [
    ("receiverUsername", None, "is required"),
    ("receiverUsername", 5, "must be a string"),
    ("receiverUsername", "", "must be printable text"),
    ("receiverUsername", "ada obi", "must not hold spaces"),
    ("receiverUsername", "a" * 61, "must have at most 60 characters"),
    ("receiverUsername", "nobody.here", "is not a user of the provider"),
    ("receiverUsername", "countersign-demo", "is your own username"),
    ("currency", None, "is required"),
    ("currency", "USDT", "must be 'NGN' or 'USD'"),
    ("amount", None, "is required"),
    ("amount", 1500, "must be a string"),
    ("amount", "0", "must be more than zero"),
    ("amount", "1.001", "must have at most 2 decimals in NGN"),
    ("memo", "x" * 29, "must have at most 28 characters"),
    ("memo", 5, "must be a string"),
    ("memo", "a\x00b", "must be printable text"),
    ("otpType", "sms", "must be 'otp' or 'totp'"),
    ("token", None, "is required"),
    ("token", "wrong", "is not valid"),
    ("network", "TRC20", "is not a known member"),
]


def transfer(provider: SandboxClient, **changes: object) -> requests.Response:
    body: dict[str, object] = {
        "receiverUsername": "adaeze.obi",
        "currency": "NGN",
        "amount": "2500.5",
        "memo": "rent",
        "otpType": "totp",
        "token": provider.process.totp(),
        **changes,
    }
    return provider.post(
        "/balance/transfer", {name: value for name, value in body.items() if value is not None}
    )


def test_the_transfer_detail_is_directly_under_data(provider: SandboxClient) -> None:
    before = provider.balance("NGN")["amount"]
    response = transfer(provider)
    assert response.status_code == 200
    detail = response.json()["data"]
    assert tuple(detail) == DETAIL
    assert all(isinstance(value, str) for value in detail.values())
    assert (detail["amount"], detail["receiveAmount"]) == ("2500.50", "2500.50")
    assert (detail["fromCurrency"], detail["toCurrency"]) == ("NGN", "NGN")
    assert (detail["sender"], detail["username"]) == (provider.process.api_user, "adaeze.obi")
    assert Decimal(detail["senderPrevbalance"]) == before


def test_a_transfer_is_final_at_once_and_free(provider: SandboxClient) -> None:
    provider.process.options(settle_after=None)
    before = provider.balance("NGN")["amount"]
    detail = transfer(provider).json()["data"]
    record = provider.record(detail["transactionId"])
    assert detail["status"] == record["status"] == "fullfiled"
    assert (record["type"], record["fee"], record["isFromRegUser"]) == ("transfer", 0, True)
    assert before - provider.balance("NGN")["amount"] == Decimal("2500.50")


@pytest.mark.parametrize(("member", "value", "phrase"), WRONG)
def test_an_invalid_field_is_refused_by_name_and_changes_nothing(
    provider: SandboxClient, member: str, value: object, phrase: str
) -> None:
    response = transfer(provider, **{member: value})
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{member} {phrase}")
    assert provider.process.ledger()["debits"]["count"] == 0


@pytest.mark.parametrize("memo", [None, "", "x" * 28])
def test_a_memo_is_optional_and_at_most_28_characters(provider: SandboxClient, memo: str | None) -> None:
    assert transfer(provider, memo=memo).status_code == 200
    (order,) = provider.process.ledger()["orders"]
    assert (order["kind"], order["receiverUsername"], order["memo"]) == ("transfer", "adaeze.obi", memo or "")


def test_the_otp_type_is_optional(provider: SandboxClient) -> None:
    assert transfer(provider, otpType=None).status_code == 200
    assert transfer(provider, otpType=None, token=provider.process.issued_otp()).status_code == 200


def test_more_than_the_balance_is_refused_without_consuming_the_one_time_code(
    provider: SandboxClient,
) -> None:
    code = provider.process.totp()
    assert transfer(provider, token=code, amount="999999999999").status_code == 422
    assert transfer(provider, token=code).status_code == 200
    assert transfer(provider, token=code).status_code == 400


def test_transfers_to_users_ending_in_99_fail_and_are_refunded(provider: SandboxClient) -> None:
    provider.process.options(settle_after=None)
    before = provider.balance("NGN")["amount"]
    detail = transfer(provider, receiverUsername="adaeze99").json()["data"]
    assert detail["status"] == "processing"
    assert provider.process.settle() == 1
    assert provider.record(detail["transactionId"])["status"] == "failed"
    assert provider.balance("NGN")["amount"] == before


def test_transfers_to_users_ending_in_88_take_an_hour(provider: SandboxClient) -> None:
    transaction_id = transfer(provider, receiverUsername="adaeze88").json()["data"]["transactionId"]
    provider.process.advance(3_000)
    assert provider.record(transaction_id)["status"] == "processing"
    provider.process.advance(700)
    assert provider.record(transaction_id)["status"] == "fullfiled"


def test_the_next_transfer_fails_on_request(provider: SandboxClient) -> None:
    provider.process.options(fail_next=1, settle_after=None)
    assert transfer(provider).json()["data"]["status"] == "processing"
    provider.process.settle()
    assert provider.process.ledger()["orders"][0]["status"] == "failed"
