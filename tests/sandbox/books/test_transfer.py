"""POST /balance/transfer."""

from decimal import Decimal

import pytest
import requests

from tests.sandbox.books.test_convert import DETAIL
from tests.sandbox.conftest import Service

WRONG = [
    ("receiverUsername", None, "is required"),
    ("receiverUsername", 5, "must be a string"),
    ("receiverUsername", "", "must be printable text"),
    ("receiverUsername", "ada obi", "must not hold spaces"),
    ("receiverUsername", "a" * 61, "must have at most 60 characters"),
    ("receiverUsername", "nobody.here", "is not a user of the service"),
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


def transfer(service: Service, **changes: object) -> requests.Response:
    body: dict[str, object] = {
        "receiverUsername": "adaeze.obi",
        "currency": "NGN",
        "amount": "2500.5",
        "memo": "rent",
        "otpType": "totp",
        "token": service.process.totp(),
        **changes,
    }
    return service.post(
        "/balance/transfer", {name: value for name, value in body.items() if value is not None}
    )


def test_the_transfer_detail_is_directly_under_data(service: Service) -> None:
    before = service.balance("NGN")["amount"]
    response = transfer(service)
    assert response.status_code == 200
    detail = response.json()["data"]
    assert tuple(detail) == DETAIL
    assert all(isinstance(value, str) for value in detail.values())
    assert (detail["amount"], detail["receiveAmount"]) == ("2500.50", "2500.50")
    assert (detail["fromCurrency"], detail["toCurrency"]) == ("NGN", "NGN")
    assert (detail["sender"], detail["username"]) == (service.process.api_user, "adaeze.obi")
    assert Decimal(detail["senderPrevbalance"]) == before


def test_a_transfer_is_final_at_once_and_free(service: Service) -> None:
    service.process.options(settle_after=None)
    before = service.balance("NGN")["amount"]
    detail = transfer(service).json()["data"]
    record = service.record(detail["transactionId"])
    assert detail["status"] == record["status"] == "fullfiled"
    assert (record["type"], record["fee"], record["isFromRegUser"]) == ("transfer", 0, True)
    assert before - service.balance("NGN")["amount"] == Decimal("2500.50")


@pytest.mark.parametrize(("member", "value", "phrase"), WRONG)
def test_an_invalid_field_is_refused_by_name_and_changes_nothing(
    service: Service, member: str, value: object, phrase: str
) -> None:
    response = transfer(service, **{member: value})
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{member} {phrase}")
    assert service.process.ledger()["debits"]["count"] == 0


@pytest.mark.parametrize("memo", [None, "", "x" * 28])
def test_a_memo_is_optional_and_at_most_28_characters(service: Service, memo: str | None) -> None:
    assert transfer(service, memo=memo).status_code == 200
    (order,) = service.process.ledger()["orders"]
    assert (order["kind"], order["receiverUsername"], order["memo"]) == ("transfer", "adaeze.obi", memo or "")


def test_the_otp_type_is_optional(service: Service) -> None:
    assert transfer(service, otpType=None).status_code == 200
    assert transfer(service, otpType=None, token=service.process.issued_otp()).status_code == 200


def test_more_than_the_balance_is_refused_without_consuming_the_one_time_code(service: Service) -> None:
    code = service.process.totp()
    assert transfer(service, token=code, amount="999999999999").status_code == 422
    assert transfer(service, token=code).status_code == 200
    assert transfer(service, token=code).status_code == 400


def test_transfers_to_users_ending_in_99_fail_and_are_refunded(service: Service) -> None:
    service.process.options(settle_after=None)
    before = service.balance("NGN")["amount"]
    detail = transfer(service, receiverUsername="adaeze99").json()["data"]
    assert detail["status"] == "processing"
    assert service.process.settle() == 1
    assert service.record(detail["transactionId"])["status"] == "failed"
    assert service.balance("NGN")["amount"] == before


def test_transfers_to_users_ending_in_88_take_a_day(service: Service) -> None:
    transaction_id = transfer(service, receiverUsername="adaeze88").json()["data"]["transactionId"]
    service.process.advance(86_000)
    assert service.record(transaction_id)["status"] == "processing"
    service.process.advance(500)
    assert service.record(transaction_id)["status"] == "fullfiled"


def test_the_next_transfer_fails_on_request(service: Service) -> None:
    service.process.options(fail_next=1, settle_after=None)
    assert transfer(service).json()["data"]["status"] == "processing"
    service.process.settle()
    assert service.process.ledger()["orders"][0]["status"] == "failed"
