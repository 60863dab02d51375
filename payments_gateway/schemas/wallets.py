"""Requests and responses under /wallet (specification: Wallet, Wallet transfer detail)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from payments_gateway.money import check_quantity
from payments_gateway.schemas.fields import (
    Amount,
    LenientAmount,
    LenientText,
    OptionalId,
    ReceiptModel,
    RequestModel,
    RequiredText,
    Storable,
    Timestamp,
    WireModel,
)


class WalletAddress(WireModel):
    """An address at which the merchant receives crypto. Network and currency are empty if not reported."""

    address: LenientText
    network: LenientText = ""
    currency: LenientText = ""


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
