"""GET /wallet and POST /wallet/transfer."""

import hashlib
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from pydantic import AfterValidator, Field

from payments_gateway.addresses import AddressError, check_address
from payments_gateway.sandbox.books import orders
from payments_gateway.sandbox.books.networks import CRYPTO, NETWORKS, address_on
from payments_gateway.sandbox.books.records import wallet_transfer_detail
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.amounts import minor_units_of
from payments_gateway.sandbox.wire.answers import answer, envelope
from payments_gateway.sandbox.wire.bodies import Body, read_body, read_query
from payments_gateway.sandbox.wire.credentials import API_USER, BUSINESS_NAME
from payments_gateway.sandbox.wire.fields import (
    AddressText,
    Crypto,
    Number,
    TextIfAny,
    WalletType,
)
from payments_gateway.sandbox.wire.refusals import refused_member

_OPENED = 1_614_589_200  # 2021-03-01 09:00 UTC


def _known_network(name: str) -> str:
    if name.upper() not in NETWORKS:
        raise ValueError(f"must be one of {', '.join(NETWORKS)}")
    return name.upper()


NetworkName = Annotated[str, Field(max_length=16), AfterValidator(_known_network)]


class WalletQuery(Body):
    """Query of GET /wallet."""

    currency: Crypto | None = None
    network: NetworkName | None = None


class WalletTransferBody(Body):
    """Body of POST /wallet/transfer."""

    network: NetworkName
    currency: Crypto
    address: AddressText
    amount: Number
    wallet_type: WalletType = ""
    memo: TextIfAny = ""


@operation("GET")
def wallet(request: HttpRequest) -> HttpResponse:
    """The merchant's wallet: an address on every network, or on the one asked for."""
    query = read_query(request, WalletQuery)
    networks = [query.network] if query.network else list(NETWORKS)
    return answer({"success": True, "message": "Wallet retrieved", "wallet": _wallet(networks)})


@operation("POST")
def transfer(request: HttpRequest) -> HttpResponse:
    """Send crypto to an address outside."""
    body = read_body(request, WalletTransferBody)
    amount = minor_units_of(body.amount, body.currency)
    _check_address(body)
    to = orders.Wallet(body.network, body.address, body.wallet_type, body.memo)
    order = orders.send(to, amount=amount)
    detail = wallet_transfer_detail(order.transaction, order)
    return envelope("Transfer accepted", {"transferDetail": detail})


def _check_address(body: WalletTransferBody) -> None:
    try:
        check_address(body.network, body.address)
    except AddressError as exc:
        raise refused_member("address", f"cannot be one on {body.network}: {exc}") from exc
    if body.address.lower() == address_on(body.network, API_USER).lower():
        raise refused_member("address", "is that of your own wallet")


def _wallet(networks: list[str]) -> dict[str, object]:
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
            {"address": address_on(network, API_USER), "network": network, "currency": CRYPTO}
            for network in networks
        ],
    }
