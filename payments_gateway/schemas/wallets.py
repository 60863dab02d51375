"""What the operations under /wallet take and give (specification: Wallet, Wallet transfer detail)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from payments_gateway.money import check_quantity
from payments_gateway.schemas.fields import (
    Amount,
    Filled,
    Identity,
    Moment,
    Receipt,
    Remark,
    Request,
    Storable,
    ToldAmount,
    Wire,
)


class WalletAddress(Wire):
    """Where the merchant receives crypto. Network and currency are empty where the service does not say."""

    address: Remark
    network: Remark = ""
    currency: Remark = ""


class Wallet(Wire):
    """The merchant's crypto wallet, with the addresses that were asked for."""

    addresses: tuple[WalletAddress, ...] = ()
    uid: Remark = ""
    reference: Remark = ""
    status: Remark = ""
    version: Remark = ""
    app_name: Annotated[Remark, Field(alias="appName")] = ""
    created_at: Annotated[Moment, Field(alias="createdAt")] = None
    updated_at: Annotated[Moment, Field(alias="updatedAt")] = None


class WalletTransfer(Request):
    """Crypto from the merchant's wallet to an address. Network, currency and wallet type are free texts."""

    network: Filled
    currency: Filled
    address: Filled
    amount: Amount
    wallet_type: Annotated[Filled | None, Field(alias="walletType")] = None
    memo: Annotated[str, Storable] = ""

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_quantity(self.amount, self.currency)
        return self

    def wire(self) -> dict[str, object]:
        """Return the body of POST /wallet/transfer: the amount as a number, what is not given left out."""
        body: dict[str, object] = self.model_dump(by_alias=True, exclude_none=True)
        if not self.memo:
            del body["memo"]
        return body


class WalletTransferDetail(Receipt):
    """The service's yes to a transfer out of the wallet. `status` is in our words where it is one of theirs."""

    transaction_id: Annotated[Identity, Field(alias="transactionId")] = None
    status: Remark = ""
    type: Remark = ""
    date: Remark = ""
    sender: Remark = ""
    username: Remark = ""
    from_currency: Annotated[Remark, Field(alias="fromCurrency")] = ""
    to_currency: Annotated[Remark, Field(alias="toCurrency")] = ""
    amount: ToldAmount = None
    receive_amount: Annotated[ToldAmount, Field(alias="receiveAmount")] = None
    address: Remark = ""
    memo: Remark = ""
