"""The wallet and its addresses, wherever they are in the answer."""

from typing import Any

import pytest

from payments_gateway import ReadFailedError, Wallet
from tests.payments_gateway.calls import DONE
from tests.payments_gateway.resources.envelopes.conftest import NOON, Answered

WALLET = {
    "uid": "W1",
    "appName": "acme",
    "reference": "R",
    "status": "active",
    "version": "v2",
    "addresses": [],
}


@pytest.mark.parametrize(
    "body",
    [
        {**DONE, "wallet": WALLET},
        {**DONE, "data": WALLET},
        {**DONE, "data": {"wallet": WALLET}},
    ],
)
def test_a_wallet_is_read_beside_or_inside_data(answered: Answered, body: dict[str, Any]) -> None:
    wallet = answered("wallets.get", body)
    assert isinstance(wallet, Wallet)
    assert (wallet.uid, wallet.app_name, wallet.reference) == ("W1", "acme", "R")
    assert (wallet.status, wallet.version, wallet.addresses) == ("active", "v2", ())


@pytest.mark.parametrize(
    "wallet", [{"addresses": None}, {"uid": "W1"}, {"createdAt": 1763726400}, WALLET | {"addresses": "T9yD"}]
)
def test_a_wallet_without_a_list_of_addresses_is_refused(answered: Answered, wallet: dict[str, Any]) -> None:
    with pytest.raises(ReadFailedError, match=r"addresses is (missing|not a list)"):
        answered("wallets.get", {"wallet": wallet})


@pytest.mark.parametrize(
    "element", [{"memo": "7"}, {"address": None}, {"address": None, "id": ["x"]}, None, 7]
)
def test_an_element_without_an_address_is_refused(answered: Answered, element: object) -> None:
    with pytest.raises(
        ReadFailedError,
        match=r"(none of address, id is present|id is not text|an entry of addresses is neither an object nor text)",
    ):
        answered("wallets.get", {"wallet": WALLET | {"addresses": ["T9yD", element]}})


@pytest.mark.parametrize(
    ("element", "reported"),
    [
        ("T9yD", ("T9yD", "", "")),
        ({"address": "T9yD", "network": "TRC20", "currency": "USDT"}, ("T9yD", "TRC20", "USDT")),
        ({"id": "T9yD", "type": "TRC20"}, ("T9yD", "TRC20", "")),
        ({"id": "17", "address": "T9yD", "type": "deposit", "network": "TRC20"}, ("T9yD", "TRC20", "")),
    ],
)
def test_an_address_is_read_from_text_or_object(
    answered: Answered, element: object, reported: tuple[str, str, str]
) -> None:
    wallet = answered(
        "wallets.get", {"wallet": {"addresses": [element], "createdAt": 1763726400, "updatedAt": "x"}}
    )
    (address,) = wallet.addresses
    assert (address.address, address.network, address.currency) == reported
    assert (wallet.created_at, wallet.updated_at) == (NOON, None)


@pytest.mark.parametrize(
    "body",
    [
        DONE,
        {"wallet": []},
        {"wallet": None},
        {"wallet": {"addresses": {"a": 1}}},
        {"wallet": {}},
        {**DONE, "data": {}},
        {**DONE, "data": {"note": "nothing here"}},
    ],
)
def test_a_malformed_wallet_is_refused(answered: Answered, body: dict[str, Any]) -> None:
    with pytest.raises(ReadFailedError):
        answered("wallets.get", body)
