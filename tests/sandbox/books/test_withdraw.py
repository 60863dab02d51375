"""POST /balance/withdraw: what is accepted, what is refused, and what is entered."""

from decimal import Decimal

import pytest

from tests.sandbox.conftest import SandboxClient

WRONG = [
    ("accountNumber", None, "is required"),
    ("accountNumber", 123456789, "must be a string"),
    ("accountNumber", "12345", "must be 10 digits"),
    ("accountNumber", "0123456789\n", "must be 10 digits"),
    ("accountNumber", "0123450000", "does not exist at Access Bank"),
    ("accountName", None, "is required"),
    ("accountName", "", "must be printable text"),
    ("accountName", "   ", "must be printable text"),
    ("accountName", "A\x00B", "must be printable text"),
    ("accountName", "A\ud800", "must be text in valid Unicode"),
    ("accountName", "A" * 121, "must have at most 120 characters"),
    ("accountName", {"first": "Ada"}, "must be a string"),
    ("bank", None, "is required"),
    ("bank", ["Access Bank"], "must be a string"),
    ("bankCode", None, "is required"),
    ("bankCode", "000", "is not a known bank code"),
    ("currency", None, "is required"),
    ("currency", "USDT", "must be 'NGN' or 'USD'"),
    ("currency", "ngn", "must be 'NGN' or 'USD'"),
    ("amount", None, "is required"),
    ("amount", 1500, "must be a string"),
    ("amount", 15.5, "must be a string"),
    ("amount", True, "must be a string"),
    ("amount", "", "must have at least 1 characters"),
    ("amount", "0", "must be more than zero"),
    ("amount", "0.00", "must be more than zero"),
    ("amount", "-5", "must be a plain decimal number"),
    ("amount", "+5", "must be a plain decimal number"),
    ("amount", "1e5", "must be a plain decimal number"),
    ("amount", "NaN", "must be a plain decimal number"),
    ("amount", "Infinity", "must be a plain decimal number"),
    ("amount", "1,000.50", "must be a plain decimal number"),
    ("amount", " 5", "must be a plain decimal number"),
    ("amount", "5.", "must be a plain decimal number"),
    ("amount", ".5", "must be a plain decimal number"),
    ("amount", "\N{ARABIC-INDIC DIGIT FIVE}", "must be a plain decimal number"),
    ("amount", "1" * 13, "must be a plain decimal number"),
    ("amount", "1" * 41, "must have at most 40 characters"),
    ("amount", "1.001", "must have at most 2 decimals in NGN"),
    ("otpType", None, "is required"),
    ("otpType", "sms", "must be 'otp' or 'totp'"),
    ("token", None, "is required"),
    ("token", 123456, "must be a string"),
    ("token", "1" * 17, "must have at most 16 characters"),
    ("memo", "hello", "is not a known member"),
]


def test_the_response_has_only_data(provider: SandboxClient) -> None:
    response = provider.withdraw()
    assert response.status_code == 200
    assert list(response.json()) == ["data"]
    data = response.json()["data"]
    assert data["status"] == "processing"
    assert (data["currency"], data["amount"], data["fee"]) == ("NGN", "1500.25", "50.00")
    assert provider.record(data["transactionId"])["type"] == "withdrawal"


@pytest.mark.parametrize(("currency", "fee"), [("NGN", Decimal(50)), ("USD", Decimal(1))])
def test_amount_and_fee_are_debited_at_once(provider: SandboxClient, currency: str, fee: Decimal) -> None:
    before = provider.balance(currency)
    provider.withdraw(currency=currency, amount="120.10")
    after = provider.balance(currency)
    assert before["amount"] - after["amount"] == Decimal("120.10") + fee
    assert after["totalSent"] - before["totalSent"] == Decimal("120.10") + fee
    assert after["totalRecieved"] == before["totalRecieved"]
    assert after["txnCount"] == before["txnCount"] + 1


def test_the_record_has_the_balance_before_and_both_parties(provider: SandboxClient) -> None:
    before = provider.balance("NGN")["amount"]
    record = provider.record(provider.withdraw().json()["data"]["transactionId"])
    assert record["prevBalance"] == record["senderPrevbalance"] == before
    assert (record["amount"], record["fee"]) == (Decimal("1500.25"), 50)
    assert (record["sender"], record["username"]) == (provider.process.api_user, "Kelechi Eze")
    assert (record["fromCurrency"], record["fromAmount"]) == ("NGN", Decimal("1500.25"))


@pytest.mark.parametrize(("member", "value", "phrase"), WRONG)
def test_an_invalid_field_is_refused_by_name_and_changes_nothing(
    provider: SandboxClient, member: str, value: object, phrase: str
) -> None:
    response = provider.withdraw(**{"token": "123456", member: value})
    assert response.status_code == 400
    assert response.json()["success"] is False
    assert response.json()["message"].startswith(f"{member} {phrase}")
    assert response.json()["errors"][0]["field"] == member
    assert provider.process.ledger()["withdrawals"] == []


def test_every_invalid_field_is_listed(provider: SandboxClient) -> None:
    errors = provider.withdraw(amount=1, bank=None, currency="EUR").json()["errors"]
    assert {error["field"] for error in errors} == {"amount", "bank", "currency"}


def test_more_than_the_balance_is_refused(provider: SandboxClient) -> None:
    before = provider.balance("NGN")
    response = provider.withdraw(amount=f"{before['amount'] + 1}")
    assert response.status_code == 422
    assert "insufficient funds" in response.json()["message"]
    assert provider.balance("NGN") == before


def test_the_fee_must_be_covered_too(provider: SandboxClient) -> None:
    whole = provider.balance("NGN")["amount"]
    assert provider.withdraw(amount=f"{whole}").status_code == 422
    assert provider.withdraw(amount=f"{whole - 50}").status_code == 200
    assert provider.balance("NGN")["amount"] == 0


def test_a_refused_request_does_not_consume_the_one_time_code(provider: SandboxClient) -> None:
    code = provider.process.totp()
    assert provider.withdraw(token=code, amount="999999999999").status_code == 422
    assert provider.withdraw(token=code).status_code == 200
