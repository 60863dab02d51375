"""The optional reads, over HTTP: as they are on the wire, and as our client reads them."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from payments_gateway import BANKS, CURRENCIES, GatewayConfig, NotFoundError, PaymentsGateway, ProviderProfile
from payments_gateway.profile.values import CAPABILITIES
from payments_gateway.sandbox.books.counterparties import WALLETS
from tests.sandbox.conftest import SandboxClient, exact


@pytest.fixture
def client(provider: SandboxClient) -> Iterator[PaymentsGateway]:
    """Our client, with every optional read switched on."""
    config = GatewayConfig(
        base_url=provider.process.url,
        base_url_v4=provider.process.url.replace("/v2", "/v4"),
        api_key=SecretStr(provider.process.api_key),
        api_user=provider.process.api_user,
        profile=ProviderProfile(capabilities=CAPABILITIES),
    )
    with PaymentsGateway(config) as gateway:
        yield gateway


def payment(provider: SandboxClient, **changes: object) -> Any:
    """A new payment, as POST /payment answers it."""
    body = {
        "businessId": "b5f1c2d94a7e4f0ba1c83d56",
        "incomingCurrency": "USDT",
        "outgoingCurrency": "NGN",
        "customerEmail": "ada@example.com",
        "paymentType": "profile",
        "serviceUsername": "kelechi.eze",
        "incomingAmount": 25,
        "reference": "R-1",
        **changes,
    }
    response = provider.post("/payment", body)
    assert response.status_code == 200, response.text
    return exact(response)["data"]


def test_the_banks_are_those_with_accounts(provider: SandboxClient, client: PaymentsGateway) -> None:
    assert {bank.code: bank.name for bank in client.extras.banks()} == BANKS
    assert exact(provider.get("/bank/supported"))["data"][0] == {"Code": "044", "Name": "Access Bank"}


@pytest.mark.parametrize(("country", "count"), [("NG", len(BANKS)), ("Nigeria", len(BANKS)), ("GH", 0)])
def test_banks_are_filtered_by_country(client: PaymentsGateway, country: str, count: int) -> None:
    assert len(client.extras.banks(country=country)) == count


def test_there_is_a_rate_for_every_pair(client: PaymentsGateway) -> None:
    rates = client.extras.rates()
    assert set(rates) == {first + second for first in CURRENCIES for second in CURRENCIES if first != second}
    assert rates["USDTNGN"].rate > 1000
    assert 0 < rates["NGNUSDT"].rate < 1
    assert rates["USDTNGN"].rate * rates["NGNUSDT"].rate < 1  # nobody gains by going to and fro


def test_the_rate_key_fixes_the_rate_of_a_payment(provider: SandboxClient, client: PaymentsGateway) -> None:
    rate = client.extras.rates()["USDTNGN"]
    made = payment(provider, rateKey=rate.key)
    assert made["rate"] == rate.rate
    assert made["outgoingAmount"] == (25 * rate.rate).quantize(Decimal("0.01"), rounding="ROUND_DOWN")


def test_the_currencies_are_those_of_the_balances(client: PaymentsGateway) -> None:
    balances = [balance.currency for balance in client.balances.list()]
    assert [currency.code for currency in client.extras.currencies()] == balances
    assert [minimum.currency for minimum in client.extras.minimums()] == [*balances, "USDC", "BTC"]


def test_amounts_below_the_minimum_are_refused(provider: SandboxClient, client: PaymentsGateway) -> None:
    least = {minimum.currency: minimum.amount for minimum in client.extras.minimums()}["NGN"]
    assert least == Decimal("0.01")
    assert provider.withdraw(amount=str(least)).status_code == 200
    assert provider.withdraw(amount="0.009").status_code == 400


def test_the_networks_are_those_crypto_can_be_sent_on(
    provider: SandboxClient, client: PaymentsGateway
) -> None:
    options = {option.currency: option.networks for option in client.extras.wallet_config()}
    assert options == {code: list(networks) for code, networks in WALLETS.items()}
    addresses = client.wallets.get().addresses
    assert options == {
        code: [each.network for each in addresses if each.currency == code] for code in options
    }


def test_a_single_transaction_equals_the_listed_one(provider: SandboxClient, client: PaymentsGateway) -> None:
    listed = client.transactions.page(per_page=1).records[0]
    assert client.extras.transaction(listed.transaction_id) == listed
    assert exact(provider.get(f"/transaction/{listed.transaction_id}")) == provider.records()[-1]


def test_a_single_payment_equals_the_created_one(provider: SandboxClient, client: PaymentsGateway) -> None:
    made = payment(provider)
    found = client.extras.payment(made["_id"])
    assert (found.id, found.reference, found.state) == (made["_id"], "R-1", made["state"])
    assert found.raw == made


@pytest.mark.parametrize("identity", ["T-404", "a?b#c", "Ż", "x" * 128])
def test_unknown_ids_are_not_found(client: PaymentsGateway, identity: str) -> None:
    with pytest.raises(NotFoundError, match="no such transaction"):
        client.extras.transaction(identity)
    with pytest.raises(NotFoundError, match="no such payment"):
        client.extras.payment(identity)


def test_resolving_a_payment_is_not_offered(provider: SandboxClient) -> None:
    assert provider.get("/payment/resolve").status_code == 404


@pytest.mark.parametrize("country", ["x" * 61, "a\x00", "\ud83d"])
def test_an_unknown_country_has_no_banks_or_is_refused(provider: SandboxClient, country: str) -> None:
    query = country.encode("utf-8", "surrogatepass")
    response = provider.session.get(
        provider.process.url + "/bank/supported", params={"country": query}, timeout=30
    )
    assert response.status_code in {200, 400}
    assert response.json().get("data", []) == []
