"""Crypto wallets: deposit addresses, and transfers out (specification: Wallet, Wallet transfer detail)."""

from functools import partial
from typing import Annotated, Self

from pydantic import Field, model_validator

from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import (
    Amount,
    LenientAmount,
    LenientText,
    OptionalId,
    ReceiptModel,
    RequestModel,
    RequiredText,
    Storable,
    Text,
    Timestamp,
    WireModel,
)
from payments_gateway.money import UnreadableError, check_quantity
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.responses import (
    ParsedResponse,
    first_object,
    list_in,
    missing,
    text_at,
    transfer_detail,
)
from payments_gateway.transport import Resource


class WalletAddress(WireModel):
    """An address at which the merchant receives crypto, empty if the provider gives an empty one.

    Network and currency are empty if not reported.
    """

    address: Text
    network: Text = ""
    currency: Text = ""


class Wallet(WireModel):
    """The merchant's crypto wallet, with the requested addresses."""

    addresses: tuple[WalletAddress, ...] = ()
    uid: LenientText = ""
    reference: LenientText = ""
    status: LenientText = ""
    version: LenientText = ""
    app_name: Annotated[LenientText, Field(alias="appName")] = ""
    created_at: Annotated[Timestamp, Field(alias="createdAt")] = None
    updated_at: Annotated[Timestamp, Field(alias="updatedAt")] = None


class WalletTransfer(RequestModel):
    """Crypto from the merchant's wallet to an address. Network, currency and type are free text."""

    network: RequiredText
    currency: RequiredText
    address: RequiredText
    amount: Amount
    wallet_type: Annotated[RequiredText | None, Field(alias="walletType")] = None
    memo: Annotated[str, Storable] = ""

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_quantity(self.amount, self.currency)
        return self

    def wire(self) -> dict[str, object]:
        """Return the body of POST /wallet/transfer: the amount as a number, without members that are not set."""
        body: dict[str, object] = self.model_dump(by_alias=True, exclude_none=True)
        if not self.memo:
            del body["memo"]
        return body


class WalletTransferDetail(ReceiptModel):
    """The success response to a transfer out of the wallet.

    `status` is fulfilled, processing, failed, or the provider's own word.
    """

    transaction_id: Annotated[OptionalId, Field(alias="transactionId")] = None
    status: LenientText = ""
    type: LenientText = ""
    date: LenientText = ""
    sender: LenientText = ""
    username: LenientText = ""
    from_currency: Annotated[LenientText, Field(alias="fromCurrency")] = ""
    to_currency: Annotated[LenientText, Field(alias="toCurrency")] = ""
    amount: LenientAmount = None
    receive_amount: Annotated[LenientAmount, Field(alias="receiveAmount")] = None
    address: LenientText = ""
    memo: LenientText = ""


_WALLET_PATHS = (("wallet",), ("data", "wallet"), ("data",))


class Wallets(Resource):
    """The operations under /wallet."""

    def get(self, *, currency: str | None = None, network: str | None = None) -> Wallet:
        """Return the merchant's wallet with its addresses (GET /wallet), of all or one currency and network.

        Both are free text. An address may lack the network or currency it is for. An empty list of
        addresses is valid; without the list the read failed. Changes nothing and is retried.
        Raises RejectedError, ReadFailedError. Specification: Endpoints, GET /wallet; Wallet (the shape of
        `addresses` is not shown).
        """
        profile = self._profile
        query = {profile.wallet_currency_query: currency, profile.wallet_network_query: network}
        return self._transport.read("GET", "/wallet", query=query, into=partial(_parse_wallet, profile))

    def transfer(self, request: WalletTransfer) -> WalletTransferDetail:
        """Send crypto from the merchant's wallet to an address (POST /wallet/transfer).

        Network, currency, address, wallet type and memo are free text; the amount is sent as a number.
        Whether the address is valid on the network is not checked here, and perhaps not by the provider
        either. Takes no one-time code.

        Not repeatable, and final: the API has no idempotency key. Raises RejectedError when the provider
        rejected the request, NotSentError when nothing was sent, OutcomeUnknownError otherwise.
        Specification: Endpoints, POST /wallet/transfer; Wallet transfer detail.
        """
        into = partial(_parse_transfer_detail, self._profile)
        return self._transport.send_once("POST", "/wallet/transfer", request.wire(), into=into)


def _parse_transfer_detail(profile: ProviderProfile, response: ParsedResponse) -> WalletTransferDetail:
    received = {"raw": response.data, "provider_message": response.message}
    detail = WalletTransferDetail.model_validate(transfer_detail(response) | received)
    return detail.model_copy(update={"status": profile.status(detail.status)})


def _parse_wallet(profile: ProviderProfile, response: ParsedResponse) -> Wallet:
    wallet = first_object(response.members, _WALLET_PATHS)
    elements = list_in(wallet, "addresses")
    return Wallet.model_validate(
        wallet | {"addresses": [_parse_address(profile, element) for element in elements]}
    )


def _parse_address(profile: ProviderProfile, element: object) -> WalletAddress:
    """Read an element of `addresses`: the address as a text, or an object with more members."""
    if isinstance(element, str):
        return WalletAddress(address=element)
    if not isinstance(element, dict):
        raise UnreadableError(_("an entry of {member} is neither an object nor text"), member="addresses")
    named = {
        "address": profile.wallet_address_members,
        "network": profile.wallet_network_members,
        "currency": profile.wallet_address_currency_members,
    }
    found = {ours: text_at(element, [(name,) for name in names]) for ours, names in named.items()}
    if not any(isinstance(element.get(name), (str, int)) for name in named["address"]):
        raise missing(profile.wallet_address_members)
    return WalletAddress.model_validate({**element, **found})
