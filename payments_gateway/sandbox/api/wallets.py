"""GET /wallet and POST /wallet/transfer."""

import hashlib
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from pydantic import AfterValidator, Field

from payments_gateway.crypto_addresses import AddressError, check_address
from payments_gateway.sandbox import API_USER, BUSINESS_NAME
from payments_gateway.sandbox.amounts import minor_units_of
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    AddressText,
    ApiRequest,
    CryptoCurrency,
    ExactNumber,
    OptionalText,
    WalletType,
    envelope,
    json_response,
    read_body,
    read_query,
)
from payments_gateway.sandbox.books import orders
from payments_gateway.sandbox.books.counterparties import NETWORKS, WALLETS, address_on
from payments_gateway.sandbox.books.records import wallet_transfer_detail
from payments_gateway.sandbox.errors import refused_member

_OPENED = 1_614_589_200  # 2021-03-01 09:00 UTC


def _known_network(name: str) -> str:
    if name.upper() not in NETWORKS:
        raise ValueError(f"must be one of {', '.join(NETWORKS)}")
    return name.upper()


NetworkName = Annotated[str, Field(max_length=16), AfterValidator(_known_network)]


class WalletQuery(ApiRequest):
    """Query of GET /wallet."""

    currency: CryptoCurrency | None = None
    network: NetworkName | None = None


class WalletTransferRequest(ApiRequest):
    """Body of POST /wallet/transfer."""

    network: NetworkName
    currency: CryptoCurrency
    address: AddressText
    amount: ExactNumber
    wallet_type: WalletType = ""
    memo: OptionalText = ""


@api_view("GET")
def wallet(request: HttpRequest) -> HttpResponse:
    """GET /wallet: the merchant's wallet, with an address for every currency and network, or those asked for."""
    query = read_query(request, WalletQuery)
    return json_response({"success": True, "message": "Wallet retrieved", "wallet": _wallet(query)})


@api_view("POST")
def transfer(request: HttpRequest) -> HttpResponse:
    """POST /wallet/transfer: send crypto to an external address."""
    body = read_body(request, WalletTransferRequest)
    amount = minor_units_of(body.amount, body.currency)
    _check_network(body)
    _check_address(body)
    to = orders.DestinationWallet(body.network, body.address, body.wallet_type, body.memo)
    order = orders.send(to, currency=body.currency, amount=amount)
    detail = wallet_transfer_detail(order.transaction, order)
    return envelope("Transfer accepted", {"transferDetail": detail})


def _check_network(body: WalletTransferRequest) -> None:
    networks = WALLETS[body.currency]
    if body.network not in networks:
        raise refused_member("network", f"must be one of {', '.join(networks)} for {body.currency}")


def _check_address(body: WalletTransferRequest) -> None:
    try:
        check_address(body.network, body.address)
    except AddressError as exc:
        raise refused_member("address", f"cannot be one on {body.network}: {exc}") from exc
    if body.address.lower() == address_on(body.network, API_USER).lower():
        raise refused_member("address", "is that of your own wallet")


def _wallet(query: WalletQuery) -> dict[str, object]:
    uid = hashlib.sha256(f"wallet {API_USER}".encode()).hexdigest()
    return {
        "createdAt": _OPENED,
        "updatedAt": _OPENED,
        "appName": BUSINESS_NAME,
        "reference": f"WAL-{uid[24:36]}",
        "uid": uid[:24],
        "status": "active",
        "version": "v2",
        "addresses": [
            {"address": address_on(network, API_USER), "network": network, "currency": currency}
            for currency, networks in WALLETS.items()
            for network in networks
            if query.currency in {None, currency} and query.network in {None, network}
        ],
    }
