"""GET /balance."""

import pytest

from tests.sandbox.conftest import Service, exact

MEMBERS = {"totalRecieved", "totalSent", "txnCount", "toCurrency", "amount", "formattedAmount"}


def test_every_currency_is_listed_in_the_standard_envelope(service: Service) -> None:
    body = exact(service.get("/balance"))
    assert body["success"] is True
    assert isinstance(body["message"], str)
    assert [entry["toCurrency"] for entry in body["data"]["balances"]] == ["NGN", "USD", "USDT"]
    assert all(set(entry) == MEMBERS for entry in body["data"]["balances"])


def test_every_amount_is_a_json_number(service: Service) -> None:
    for entry in exact(service.get("/balance"))["data"]["balances"]:
        assert not any(isinstance(entry[name], str) for name in MEMBERS - {"toCurrency"})
        assert entry["amount"] == entry["totalRecieved"] - entry["totalSent"]


@pytest.mark.parametrize("currency", ["NGN", "USD", "USDT"])
def test_one_currency_can_be_requested(service: Service, currency: str) -> None:
    assert service.balance(currency)["toCurrency"] == currency


def test_the_formatted_amount_is_truncated_to_two_decimals(service: Service) -> None:
    entry = service.balance("USDT")
    assert 0 <= entry["amount"] - entry["formattedAmount"] < 1
    assert round(entry["formattedAmount"], 2) == entry["formattedAmount"]


def test_the_date_header_has_the_providers_time(service: Service) -> None:
    assert service.get("/balance").headers["Date"].endswith("GMT")


def test_connections_are_kept_alive(service: Service) -> None:
    response = service.get("/balance")
    assert response.headers["Connection"] == "keep-alive"
    assert int(response.headers["Content-Length"]) == len(response.content)
