"""Requests and responses under /balance (specification: Balance entry, Transfer detail)."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator

from payments_gateway.money import check_amount, format_plain
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import OtpType
from payments_gateway.schemas.fields import (
    Amount,
    Count,
    FormattedAmount,
    LenientAmount,
    LenientText,
    OptionalId,
    ReceiptModel,
    RequestModel,
    RequiredText,
    Storable,
    Text,
    WireModel,
)

FiatCurrency = Literal["NGN", "USD"]
MEMO_MAX = 28


class Balance(WireModel):
    """The merchant's balance in one currency."""

    currency: Annotated[Text, Field(alias="toCurrency", min_length=1)]
    amount: Amount
    total_received: Annotated[Amount, Field(alias="totalRecieved")]
    total_sent: Annotated[Amount, Field(alias="totalSent")]
    transaction_count: Annotated[Count, Field(alias="txnCount")]
    formatted_amount: Annotated[FormattedAmount, Field(alias="formattedAmount")]


class Withdrawal(RequestModel):
    """A withdrawal of fiat from the merchant's balance to a bank account."""

    account_number: Annotated[RequiredText, Field(alias="accountNumber")]
    account_name: Annotated[RequiredText, Field(alias="accountName")]
    bank: RequiredText
    bank_code: Annotated[RequiredText, Field(alias="bankCode")]
    currency: str
    amount: Amount
    otp_type: Annotated[OtpType | None, Field(alias="otpType")] = None

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_amount(self.amount, self.currency)
        return self

    def wire(self, otp: SecretStr | None, profile: ProviderProfile) -> dict[str, object]:
        """Return the body of POST /balance/withdraw: the amount as text, the one-time code still a secret.

        The OTP type defaults to that of the profile.
        """
        body: dict[str, object] = self.model_dump(by_alias=True, exclude={"otp_type", "amount"})
        body |= {
            "amount": format_plain(self.amount),
            profile.otp_type_member: self.otp_type or profile.otp_type,
        }
        return body if otp is None else body | {"token": otp}


class Conversion(RequestModel):
    """A conversion between NGN and USD. `amount` is the amount sold, in `from_currency`."""

    from_currency: Annotated[FiatCurrency, Field(alias="fromCurrency")]
    to_currency: Annotated[FiatCurrency, Field(alias="toCurrency")]
    amount: Amount

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        check_amount(self.amount, self.from_currency)
        if self.from_currency == self.to_currency:
            raise ValueError("A conversion needs two different currencies.")
        return self

    def wire(self) -> dict[str, object]:
        """Return the body of POST /balance/convert: the amount as text."""
        body: dict[str, object] = self.model_dump(by_alias=True)
        return body | {"amount": format_plain(self.amount)}


class Transfer(RequestModel):
    """A transfer of fiat to another user of the provider. The memo has at most 28 characters."""

    receiver_username: Annotated[RequiredText, Field(alias="receiverUsername")]
    currency: FiatCurrency
    amount: Amount
    memo: Annotated[str, StringConstraints(max_length=MEMO_MAX), Storable] = ""
    otp_type: Annotated[OtpType | None, Field(alias="otpType")] = None

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_amount(self.amount, self.currency)
        return self

    def wire(self, otp: SecretStr | None, profile: ProviderProfile) -> dict[str, object]:
        """Return the body of POST /balance/transfer: the amount as text, the one-time code still a secret.

        An empty memo is omitted; the OTP type defaults to that of the profile.
        """
        body: dict[str, object] = {
            "receiverUsername": self.receiver_username,
            profile.transfer_currency_member: self.currency,
            "amount": format_plain(self.amount),
            profile.otp_type_member: self.otp_type or profile.otp_type,
        }
        optional = {"memo": self.memo or None, "token": otp}
        return body | {name: value for name, value in optional.items() if value is not None}


class WithdrawalReceipt(WireModel):
    """The success response to a withdrawal. `raw` is its `data`.

    It often names no transaction (None) and no status (empty).
    """

    transaction_id: OptionalId
    status: str
    raw: dict[str, Any]


class TransferDetail(ReceiptModel):
    """The success response to a conversion or to a transfer between users.

    `status` is fulfilled, processing, failed, or the provider's own word; `date` is the provider's text, not
    parsed.
    """

    transaction_id: Annotated[OptionalId, Field(alias="transactionId")] = None
    status: LenientText = ""
    date: LenientText = ""
    sender: LenientText = ""
    username: LenientText = ""
    from_currency: Annotated[LenientText, Field(alias="fromCurrency")] = ""
    to_currency: Annotated[LenientText, Field(alias="toCurrency")] = ""
    amount: LenientAmount = None
    receive_amount: Annotated[LenientAmount, Field(alias="receiveAmount")] = None
    sender_previous_balance: Annotated[LenientAmount, Field(alias="senderPrevbalance")] = None
