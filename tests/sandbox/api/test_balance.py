"""GET /balance."""

import pytest

from tests.sandbox.conftest import SandboxClient, exact

MEMBERS = {"totalRecieved", "totalSent", "txnCount", "toCurrency", "amount", "formattedAmount"}


def test_every_currency_is_listed_in_the_standard_envelope(provider: SandboxClient) -> None:
    body = exact(provider.get("/balance"))
    assert body["success"] is True
    assert isinstance(body["message"], str)
    assert [entry["toCurrency"] for entry in body["data"]["balances"]] == ["NGN", "USD", "USDT"]
    assert all(set(entry) == MEMBERS for entry in body["data"]["balances"])


def test_every_amount_is_a_json_number(provider: SandboxClient) -> None:
    for entry in exact(provider.get("/balance"))["data"]["balances"]:
        assert not any(isinstance(entry[name], str) for name in MEMBERS - {"toCurrency"})
        assert entry["amount"] == entry["totalRecieved"] - entry["totalSent"]


@pytest.mark.parametrize("currency", ["NGN", "USD", "USDT"])
def test_one_currency_can_be_requested(provider: SandboxClient, currency: str) -> None:
    assert provider.balance(currency)["toCurrency"] == currency


def test_the_formatted_amount_is_truncated_to_two_decimals(provider: SandboxClient) -> None:
    entry = provider.balance("USDT")
    assert 0 <= entry["amount"] - entry["formattedAmount"] < 1
    assert round(entry["formattedAmount"], 2) == entry["formattedAmount"]


def test_the_date_header_has_the_providers_time(provider: SandboxClient) -> None:
    assert provider.get("/balance").headers["Date"].endswith("GMT")


def test_connections_are_kept_alive(provider: SandboxClient) -> None:
    response = provider.get("/balance")
    assert response.headers["Connection"] == "keep-alive"
    assert int(response.headers["Content-Length"]) == len(response.content)
