"""What the operations under /balance take and give."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, SecretStr, model_validator

from payments_gateway.dialect import Dialect, OtpType
from payments_gateway.money import check_amount, plain
from payments_gateway.schemas.fields import Amount, Count, Filled, FormattedAmount, Text, Wire


class Balance(Wire):
    """What the merchant has in one currency."""

    currency: Annotated[Text, Field(alias="toCurrency", min_length=1)]
    amount: Amount
    total_received: Annotated[Amount, Field(alias="totalRecieved")]
    total_sent: Annotated[Amount, Field(alias="totalSent")]
    transaction_count: Annotated[Count, Field(alias="txnCount")]
    formatted_amount: Annotated[FormattedAmount, Field(alias="formattedAmount")]


class Withdrawal(Wire):
    """Fiat from the merchant's balance to a bank account."""

    model_config = ConfigDict(extra="forbid")

    account_number: Annotated[Filled, Field(alias="accountNumber")]
    account_name: Annotated[Filled, Field(alias="accountName")]
    bank: Filled
    bank_code: Annotated[Filled, Field(alias="bankCode")]
    currency: str
    amount: Amount
    otp_type: Annotated[OtpType | None, Field(alias="otpType")] = None

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_amount(self.amount, self.currency)
        return self

    def wire(self, token: SecretStr | None, dialect: Dialect) -> dict[str, object]:
        """Return the body of POST /balance/withdraw: the amount as text, the token still covered.

        An OTP type that the request does not name is the one of the dialect.
        """
        body: dict[str, object] = self.model_dump(by_alias=True, exclude={"otp_type", "amount"})
        body |= {"amount": plain(self.amount), dialect.otp_type_member: self.otp_type or dialect.otp_type}
        return body if token is None else body | {"token": token}


class WithdrawalReceipt(Wire):
    """The service's yes to a withdrawal. `raw` is its `data`; often it names no
    transaction (None) and no status (empty)."""

    transaction_id: str | None
    status: str
    raw: dict[str, Any]
