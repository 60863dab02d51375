"""GET /transaction/summary."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import requests

from tests.sandbox.conftest import SandboxClient, exact
from tests.sandbox_process import SandboxProcess


@pytest.fixture(scope="module")
def year() -> Iterator[SandboxClient]:
    """A provider with 400 seeded records that this module only reads."""
    with SandboxProcess(transactions=400) as process, requests.Session() as session:
        session.headers.update(process.headers)
        yield SandboxClient(process, session)


def summary(provider: SandboxClient, **query: object) -> Any:
    response = provider.get("/transaction/summary", **query)
    assert response.status_code == 200
    return exact(response)["data"]


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"currency": "USD"},
        {"type": "conversion"},
        {"currency": "NGN", "type": "withdrawal"},
        {"duration": "one week"},
        {"page": 2, "limit": 7},
        {"page": 999},
    ],
)
def test_the_page_is_that_of_the_list_and_the_summary_covers_all_pages(
    year: SandboxClient, query: dict[str, object]
) -> None:
    found = summary(year, **query)
    assert found["txn"] == exact(year.get("/transaction", **query))["data"]
    everything = exact(year.get("/transaction", **{**query, "page": 1, "limit": 500}))["data"]["data"]
    assert found["summary"]["txnCount"] == len(everything) == found["txn"]["total"]
    assert found["summary"]["volume"] == sum(record["amount"] for record in everything)


@pytest.mark.parametrize(
    ("duration", "days"),
    [(None, 0), ("one day", 1), ("one week", 7), ("one month", 30), ("one year", 365)],
)
def test_the_duration_is_given_in_days(year: SandboxClient, duration: str | None, days: int) -> None:
    query = {"duration": duration} if duration else {}
    assert summary(year, **query)["summary"]["duration"] == days


def test_an_empty_list_has_zero_totals(provider: SandboxClient) -> None:
    provider.process.advance(40 * 86_400)
    found = summary(provider, duration="one day")
    assert found["summary"] == {"volume": Decimal(0), "txnCount": 0, "duration": 1}
    assert found["txn"]["data"] == []
