"""GET /transaction: filters, pages and the members of a record."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import requests

from tests.sandbox.conftest import SandboxClient, exact
from tests.sandbox_process import SandboxProcess

MEMBERS = (
    *("transactionId", "currency", "version", "sender", "isFromRegUser", "prevBalance", "senderPrevbalance"),
    *("type", "status", "businessId", "date", "fromCurrency", "fromAmount", "amount", "username", "fee"),
    *("createdAt", "updatedAt"),
)
NUMBERS = ("prevBalance", "senderPrevbalance", "fromAmount", "amount", "fee")
TYPES = ["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"]
DAYS = {"one day": 1, "one week": 7, "one month": 30, "one year": 365}


@pytest.fixture(scope="module")
def year() -> Iterator[SandboxClient]:
    """A provider with 1,200 seeded records that this module only reads."""
    with SandboxProcess(transactions=1_200) as process, requests.Session() as session:
        session.headers.update(process.headers)
        yield SandboxClient(process, session)


@pytest.fixture(scope="module")
def everything(year: SandboxClient) -> list[Any]:
    """Every record, newest first."""
    return [record for page in (1, 2, 3) for record in page_of(year, page=page, limit=500)["data"]]


def page_of(provider: SandboxClient, **query: object) -> Any:
    response = provider.get("/transaction", **query)
    assert response.status_code == 200
    return exact(response)["data"]


def test_a_page_has_exactly_this_shape(year: SandboxClient) -> None:
    body = exact(year.get("/transaction", page=2, limit=7))
    assert body["success"] is True
    assert isinstance(body["message"], str)
    assert {name: body["data"][name] for name in ("total", "perPage", "page", "pages")} == {
        "total": 1_200,
        "perPage": 7,
        "page": 2,
        "pages": 172,
    }


def test_every_record_is_on_one_page(everything: list[Any]) -> None:
    assert len({record["transactionId"] for record in everything}) == len(everything) == 1_200


def test_newest_come_first(everything: list[Any]) -> None:
    moments = [record["createdAt"] for record in everything]
    assert moments == sorted(moments, reverse=True)


def test_page_size_does_not_change_the_order(year: SandboxClient, everything: list[Any]) -> None:
    small = [record for page in range(1, 11) for record in page_of(year, page=page, limit=13)["data"]]
    assert small == everything[:130]


def test_the_default_is_the_first_page_of_twenty(year: SandboxClient, everything: list[Any]) -> None:
    page = page_of(year)
    assert (page["page"], page["perPage"]) == (1, 20)
    assert page["data"] == everything[:20]


def test_a_page_beyond_the_last_is_empty(year: SandboxClient) -> None:
    page = page_of(year, page=999_999_999, limit=500)
    assert page["data"] == []
    assert page["total"] == 1_200


@pytest.mark.parametrize("currency", ["NGN", "USD"])
@pytest.mark.parametrize("kind", [None, *TYPES])
def test_filters_by_currency_and_type(
    year: SandboxClient, everything: list[Any], currency: str, kind: str | None
) -> None:
    query = {"currency": currency} | ({"type": kind} if kind else {})
    expected = [each for each in everything if each["currency"] == currency and kind in {None, each["type"]}]
    page = page_of(year, limit=500, **query)
    assert page["data"] == expected[:500]
    assert page["total"] == len(expected)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_has_records(everything: list[Any], kind: str) -> None:
    assert any(record["type"] == kind for record in everything)


@pytest.mark.parametrize("duration", DAYS)
def test_filters_by_duration(year: SandboxClient, everything: list[Any], duration: str) -> None:
    begin = (datetime.now(UTC) - timedelta(days=DAYS[duration])).isoformat()
    expected = [record for record in everything if record["createdAt"] >= begin]
    page = page_of(year, limit=500, duration=duration)
    assert page["data"] == expected[:500]
    assert page["total"] == len(expected)


def test_a_parameter_given_twice_is_refused(year: SandboxClient) -> None:
    response = year.session.get(f"{year.process.url}/transaction?page=1&page=2", timeout=30)
    assert response.status_code == 400
    assert response.json()["message"] == "page is given more than once"


def test_a_record_has_exactly_the_specified_fields(everything: list[Any]) -> None:
    for record in everything:
        assert tuple(record) == MEMBERS
        assert all(isinstance(record[name], int | Decimal) for name in NUMBERS)
        assert record["date"] == record["createdAt"][:10]
        assert datetime.fromisoformat(record["updatedAt"]) >= datetime.fromisoformat(record["createdAt"])


def test_the_records_of_a_currency_have_continuous_balances(
    year: SandboxClient, everything: list[Any]
) -> None:
    for currency in ("NGN", "USD", "USDT"):
        balance = received = sent = Decimal(0)
        records = [record for record in reversed(everything) if record["currency"] == currency]
        for record in records:
            assert record["prevBalance"] == balance
            incoming = record["username"] == year.process.api_user and not given_away(record)
            balance += (record["amount"] if incoming else -record["amount"]) - record["fee"]
            received += record["amount"] if incoming else 0
            sent += 0 if incoming else record["amount"] + record["fee"]
            assert balance >= 0
        entry = year.balance(currency)
        assert (entry["amount"], entry["totalRecieved"], entry["totalSent"]) == (balance, received, sent)
        assert entry["txnCount"] == len(records)


def given_away(record: Any) -> bool:
    """Whether this is the side of a conversion that was given; the other side was received for it."""
    return bool(record["type"] == "conversion" and record["fromCurrency"] == record["currency"])
