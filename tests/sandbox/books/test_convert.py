"""POST /balance/convert, and the rates it is done at."""

from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from payments_gateway.sandbox.books import rates
from tests.sandbox.conftest import SandboxClient

DETAIL = (
    *("transactionId", "sender", "status", "date", "toCurrency", "fromCurrency", "receiveAmount", "amount"),
    *("username", "senderPrevbalance"),
)
CURRENCIES = ("NGN", "USD", "USDT")
moments = st.datetimes(datetime(2025, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
WRONG = [
    ("fromCurrency", None, "is required"),
    ("fromCurrency", "USDT", "must be 'NGN' or 'USD'"),
    ("toCurrency", None, "is required"),
    ("toCurrency", "EUR", "must be 'NGN' or 'USD'"),
    ("toCurrency", "USD", "must be another currency than fromCurrency"),
    ("amount", None, "is required"),
    ("amount", 100, "must be a string"),
    ("amount", "0", "must be more than zero"),
    ("amount", "-1", "must be a plain decimal number"),
    ("amount", "NaN", "must be a plain decimal number"),
    ("amount", "1.001", "must have at most 2 decimals in USD"),
    ("token", "123456", "is not a known member"),
]


def convert(provider: SandboxClient, **changes: object) -> requests.Response:
    body = {"fromCurrency": "USD", "toCurrency": "NGN", "amount": "100.10", **changes}
    return provider.post(
        "/balance/convert", {name: value for name, value in body.items() if value is not None}
    )


def test_the_answer_has_the_transfer_detail_with_amounts_as_strings(provider: SandboxClient) -> None:
    before = provider.balance("USD")["amount"]
    response = convert(provider)
    assert response.status_code == 200
    body = response.json()
    assert body["success"] is True
    assert list(body["data"]) == ["transferDetail"]
    detail = body["data"]["transferDetail"]
    assert tuple(detail) == DETAIL
    assert all(isinstance(value, str) for value in detail.values())
    assert (detail["fromCurrency"], detail["toCurrency"], detail["amount"]) == ("USD", "NGN", "100.10")
    assert detail["status"] == "fullfiled"
    assert Decimal(detail["senderPrevbalance"]) == before


def test_two_records_show_what_was_sold_and_what_was_received(provider: SandboxClient) -> None:
    dollars, naira = provider.balance("USD")["amount"], provider.balance("NGN")["amount"]
    detail = convert(provider).json()["data"]["transferDetail"]
    given_away, received = provider.records()[-2:]
    assert given_away["transactionId"] == detail["transactionId"]
    assert given_away["type"] == received["type"] == "conversion"
    assert (given_away["currency"], given_away["amount"]) == ("USD", Decimal("100.10"))
    assert (received["currency"], received["amount"]) == ("NGN", Decimal(detail["receiveAmount"]))
    for record in (given_away, received):
        assert (record["fromCurrency"], record["fromAmount"]) == ("USD", Decimal("100.10"))
    assert provider.balance("USD")["amount"] == dollars - Decimal("100.10")
    assert provider.balance("NGN")["amount"] == naira + Decimal(detail["receiveAmount"])
    assert provider.process.ledger()["differences"] == []


def test_the_received_amount_is_rounded_down(provider: SandboxClient) -> None:
    detail = convert(provider, fromCurrency="NGN", toCurrency="USD", amount="100000").json()["data"]
    at = datetime.fromisoformat(provider.records()[-1]["createdAt"])
    exact = 100_000 * rates.quote("NGN", "USD", at)
    received = Decimal(detail["transferDetail"]["receiveAmount"])
    assert received == exact.quantize(Decimal("0.01"), rounding=ROUND_DOWN)


def test_an_amount_that_converts_to_zero_is_refused(provider: SandboxClient) -> None:
    response = convert(provider, fromCurrency="NGN", toCurrency="USD", amount="5")
    assert response.status_code == 400
    assert "it would become nothing" in response.json()["message"]
    assert provider.process.ledger()["debits"]["count"] == 0


def test_more_than_the_balance_is_refused(provider: SandboxClient) -> None:
    response = convert(provider, amount=f"{provider.balance('USD')['amount'] + 1}")
    assert response.status_code == 422
    assert "insufficient funds" in response.json()["message"]
    assert provider.process.ledger()["debits"]["count"] == 0


@pytest.mark.parametrize(("member", "value", "phrase"), WRONG)
def test_an_invalid_field_is_refused_by_name(
    provider: SandboxClient, member: str, value: object, phrase: str
) -> None:
    response = convert(provider, **{member: value})
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{member} {phrase}")
    assert provider.process.ledger()["debits"]["count"] == 0


def test_converting_back_and_forth_loses_money(provider: SandboxClient) -> None:
    dollars = provider.balance("USD")["amount"]
    naira = convert(provider, amount="1000").json()["data"]["transferDetail"]["receiveAmount"]
    convert(provider, fromCurrency="NGN", toCurrency="USD", amount=naira)
    assert 0 < dollars - provider.balance("USD")["amount"] < 20


def test_the_rate_moves_with_the_clock(provider: SandboxClient) -> None:
    first = convert(provider).json()["data"]["transferDetail"]["receiveAmount"]
    provider.process.advance(86_400)
    assert convert(provider).json()["data"]["transferDetail"]["receiveAmount"] != first


@given(at=moments)
def test_rates_are_constant_for_a_minute_without_arbitrage(at: datetime) -> None:
    minute = at.replace(second=0, microsecond=0)
    for one in CURRENCIES:
        for other in CURRENCIES:
            assert rates.quote(one, other, at) == rates.quote(one, other, minute)
            assert 0 < rates.quote(one, other, at) * rates.quote(other, one, at) < 1


@given(at=moments)
def test_rates_stay_within_bounds(at: datetime) -> None:
    assert 1_450 < rates.quote("USD", "NGN", at) < 1_640
    assert Decimal("0.98") < rates.quote("USDT", "USD", at) < 1


@given(at=moments, units=st.integers(1, 10**14))
def test_the_required_amount_is_the_smallest_sufficient_one(at: datetime, units: int) -> None:
    rate = rates.quote("USDT", "NGN", at)
    needed = rates.amount_needed(units, "USDT", "NGN", rate)
    assert rates.amount_received(needed, "USDT", "NGN", rate) >= units
    assert rates.amount_received(needed - 1, "USDT", "NGN", rate) < units


@given(at=moments)
def test_a_rate_key_identifies_its_minute_and_pair(at: datetime) -> None:
    key = rates.rate_key("USDT", "NGN", at)
    moment = rates.rate_key_time(key, "USDT", "NGN")
    assert moment is not None
    assert timedelta() <= at - moment < timedelta(minutes=1)
    assert rates.rate_key_time(key, "USDT", "USD") is None


@pytest.mark.parametrize("key", ["", "-", "x-1", "ffffffffffffffff-000000000000", "1b5c4c2-000000000000"])
def test_a_malformed_rate_key_is_refused(key: str) -> None:
    assert rates.rate_key_time(key, "USDT", "NGN") is None
