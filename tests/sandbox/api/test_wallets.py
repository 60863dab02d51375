"""GET /wallet and POST /wallet/transfer."""

from decimal import Decimal
from typing import Any

import pytest
import requests

from payments_gateway.crypto_addresses import AddressProof, check_address
from payments_gateway.sandbox.books.counterparties import WALLETS, address_on
from tests.sandbox.conftest import SandboxClient, exact
from tests.sandbox.hostile_requests import JSON

TRON = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
ETHEREUM = "0x" + "4" * 40
BITCOIN = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
SENDABLE = [(currency, network) for currency, networks in WALLETS.items() for network in networks]
DETAIL = (
    *("transactionId", "sender", "type", "status", "date", "toCurrency", "fromCurrency", "receiveAmount"),
    *("amount", "address", "memo", "username"),
)
WALLET = {"createdAt", "updatedAt", "appName", "reference", "uid", "status", "version", "addresses"}
WRONG = [
    ("network", None, "is required"),
    ("network", "SOLANA", "must be one of TRC20, ERC20, BEP20, POLYGON, BTC"),
    ("network", "BTC", "must be one of TRC20, ERC20, BEP20, POLYGON for USDT"),
    ("currency", None, "is required"),
    ("currency", "NGN", "must be 'USDT', 'USDC' or 'BTC'"),
    ("address", None, "is required"),
    ("address", ETHEREUM, "cannot be one on TRC20"),
    (
        "address",
        TRON[:-1] + "9",
        "cannot be one on TRC20: The checksum does not match: a character is probably mistyped",
    ),
    ("address", TRON + " ", "must not hold spaces"),
    ("address", "T" * 129, "must have at most 128 characters"),
    ("address", address_on("TRC20", "countersign-demo"), "is that of your own wallet"),
    ("amount", None, "is required"),
    ("amount", "25", "must be a number"),
    ("amount", True, "must be a number"),
    ("amount", 0, "must be more than zero"),
    ("amount", -1, "must be more than zero"),
    ("amount", 10**12, "must be more than zero, with at most 12 digits before the point"),
    ("amount", 1e-300, "must have at most 6 decimals in USDT"),
    ("amount", 1.0000001, "must have at most 6 decimals in USDT"),
    ("walletType", "", "must be printable text"),
    ("walletType", 5, "must be a string"),
    ("memo", "x" * 121, "must have at most 120 characters"),
    ("token", "123456", "is not a known member"),
]


def send(provider: SandboxClient, **changes: object) -> requests.Response:
    body = {"network": "TRC20", "currency": "USDT", "address": TRON, "amount": 25.5, **changes}
    return provider.post(
        "/wallet/transfer", {name: value for name, value in body.items() if value is not None}
    )


def detail_of(response: requests.Response) -> Any:
    assert response.status_code == 200, response.text
    return exact(response)["data"]["transferDetail"]


def test_the_wallet_is_under_its_own_name(provider: SandboxClient) -> None:
    body = provider.get("/wallet").json()
    assert set(body) == {"success", "message", "wallet"}
    wallet = body["wallet"]
    assert set(wallet) == WALLET
    assert isinstance(wallet["createdAt"], int)
    assert [(each["currency"], each["network"]) for each in wallet["addresses"]] == SENDABLE


@pytest.mark.parametrize(("currency", "network"), SENDABLE)
def test_every_address_has_a_valid_checksum_and_is_stable(
    provider: SandboxClient, currency: str, network: str
) -> None:
    (found,) = provider.get("/wallet", network=network, currency=currency).json()["wallet"]["addresses"]
    assert check_address(network, found["address"]) is AddressProof.CHECKSUM
    provider.process.reset()
    assert found in provider.get("/wallet", network=network).json()["wallet"]["addresses"]


def test_a_currency_has_no_address_on_the_network_of_another(provider: SandboxClient) -> None:
    assert provider.get("/wallet", network="TRC20", currency="USDC").json()["wallet"]["addresses"] == []


@pytest.mark.parametrize(
    ("currency", "network", "address", "amount", "fee"),
    [("USDC", "POLYGON", ETHEREUM, "12.500001", "0.2"), ("BTC", "BTC", BITCOIN, "0.00012345", "0.0002")],
)
def test_another_currency_is_held_and_sent(
    provider: SandboxClient, currency: str, network: str, address: str, amount: str, fee: str
) -> None:
    values = {"network": network, "currency": currency, "address": address, "amount": float(amount)}
    assert send(provider, **values).status_code == 422
    provider.process.deposit(currency, "20")
    detail = detail_of(send(provider, **values))
    assert (detail["fromCurrency"], detail["toCurrency"]) == (currency, currency)
    record = provider.record(detail["transactionId"])
    assert (record["currency"], record["amount"], record["fee"]) == (currency, Decimal(amount), Decimal(fee))
    provider.process.settle()
    assert provider.process.balance(currency) == 20 - Decimal(amount) - Decimal(fee)
    (order,) = provider.process.ledger()["orders"]
    assert (order["currency"], order["network"], order["status"]) == (currency, network, "fullfiled")
    assert provider.process.ledger()["differences"] == []


def test_a_failed_transfer_of_another_currency_is_refunded(provider: SandboxClient) -> None:
    provider.process.options(settle_after=None)
    provider.process.deposit("USDC", "20")
    address = ETHEREUM[:-2] + "99"
    send(provider, network="ERC20", currency="USDC", address=address, amount=5)
    assert provider.process.settle() == 1
    assert provider.process.balance("USDC") == 20
    assert provider.process.ledger()["differences"] == []


def test_balances_are_those_of_the_specification_whatever_the_wallet_holds(provider: SandboxClient) -> None:
    provider.process.deposit("BTC", "1")
    balances = provider.get("/balance").json()["data"]["balances"]
    assert [each["toCurrency"] for each in balances] == ["NGN", "USD", "USDT"]
    assert provider.get("/balance", currency="BTC").status_code == 400


def test_the_detail_has_amounts_as_numbers(provider: SandboxClient) -> None:
    response = send(provider, walletType="main", memo="invoice 7")
    assert list(response.json()["data"]) == ["transferDetail"]
    detail = detail_of(response)
    assert tuple(detail) == DETAIL
    assert (detail["amount"], detail["receiveAmount"]) == (Decimal("25.5"), Decimal("25.5"))
    assert (detail["type"], detail["status"], detail["memo"]) == ("sent", "processing", "invoice 7")
    assert (detail["address"], detail["fromCurrency"], detail["toCurrency"]) == (TRON, "USDT", "USDT")


@pytest.mark.parametrize(("network", "fee"), [("TRC20", "1"), ("ERC20", "4"), ("BEP20", "0.5")])
def test_amount_and_network_fee_are_debited_at_once(provider: SandboxClient, network: str, fee: str) -> None:
    provider.process.options(settle_after=None)
    before = provider.balance("USDT")["amount"]
    address = TRON if network == "TRC20" else ETHEREUM
    detail = detail_of(send(provider, network=network, address=address, amount=0.000001))
    record = provider.record(detail["transactionId"])
    assert (record["type"], record["fee"]) == ("sent", Decimal(fee))
    assert before - provider.balance("USDT")["amount"] == Decimal(fee) + Decimal("0.000001")


@pytest.mark.parametrize("digits", [8, 29, 60, 500])
def test_a_number_of_very_many_digits_is_refused_and_not_rounded(
    provider: SandboxClient, digits: int
) -> None:
    body = f'{{"network": "TRC20", "currency": "USDT", "address": "{TRON}", "amount": 25.{"0" * digits}1}}'
    response = provider.session.post(
        f"{provider.process.url}/wallet/transfer", data=body, headers=JSON, timeout=30
    )
    assert response.status_code == 400
    assert response.json()["message"].startswith("amount must ")
    assert provider.process.ledger()["debits"]["count"] == 0


def test_trailing_zeros_are_not_counted_as_decimals(provider: SandboxClient) -> None:
    body = f'{{"network": "TRC20", "currency": "USDT", "address": "{TRON}", "amount": 25.50000000000}}'
    response = provider.session.post(
        f"{provider.process.url}/wallet/transfer", data=body, headers=JSON, timeout=30
    )
    assert detail_of(response)["amount"] == Decimal("25.5")


@pytest.mark.parametrize(("member", "value", "phrase"), WRONG)
def test_an_invalid_field_is_refused_by_name_and_changes_nothing(
    provider: SandboxClient, member: str, value: object, phrase: str
) -> None:
    response = send(provider, **{member: value})
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{member} {phrase}")
    assert provider.process.ledger()["debits"]["count"] == 0


def test_the_fee_must_be_covered_too(provider: SandboxClient) -> None:
    whole = provider.balance("USDT")["amount"]
    assert send(provider, amount=float(whole)).status_code == 422
    assert send(provider, amount=float(whole - 1)).status_code == 200
    assert provider.balance("USDT")["amount"] == 0


def test_a_wallet_transfer_is_processing_until_it_settles(provider: SandboxClient) -> None:
    provider.process.options(settle_after=3_600)
    transaction_id = detail_of(send(provider))["transactionId"]
    provider.process.advance(3_000)
    assert provider.record(transaction_id)["status"] == "processing"
    provider.process.advance(600)
    assert provider.record(transaction_id)["status"] == "fullfiled"


@pytest.mark.parametrize(("ending", "status"), [("99", "failed"), ("12", "fullfiled")])
def test_transfers_to_addresses_ending_in_99_fail_and_are_refunded(
    provider: SandboxClient, ending: str, status: str
) -> None:
    before = provider.balance("USDT")["amount"]
    detail = detail_of(send(provider, network="BEP20", address=ETHEREUM[:-2] + ending))
    assert provider.record(detail["transactionId"])["status"] == status
    assert (provider.balance("USDT")["amount"] == before) is (status == "failed")
    assert provider.process.ledger()["differences"] == []


def test_transfers_to_addresses_ending_in_88_take_a_day(provider: SandboxClient) -> None:
    detail = detail_of(send(provider, network="BEP20", address=ETHEREUM[:-2] + "88"))
    assert provider.record(detail["transactionId"])["status"] == "processing"
    provider.process.advance(86_400)
    assert provider.record(detail["transactionId"])["status"] == "fullfiled"


def test_the_control_ledger_has_the_address(provider: SandboxClient) -> None:
    send(provider, walletType="main", memo="invoice 7")
    (order,) = provider.process.ledger()["orders"]
    assert {name: order[name] for name in ("kind", "network", "address", "walletType", "memo")} == {
        "kind": "wallet_transfer",
        "network": "TRC20",
        "address": TRON,
        "walletType": "main",
        "memo": "invoice 7",
    }
