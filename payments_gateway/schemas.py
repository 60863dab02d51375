"""Typed requests and answers: our names in the code, the specification's names on the wire, Decimal only."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)

from payments_gateway.dialect import Dialect, OtpType
from payments_gateway.money import check_amount, plain

TransactionType = Literal["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"]
Duration = Literal["one day", "one week", "one month", "one year"]

_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_SECONDS = re.compile(r"[0-9]{1,16}(\.[0-9]{1,9})?")


def _exact(value: object) -> Decimal:
    """Take a JSON number or its text as it is. A float has already lost digits and is refused."""
    match value:
        case bool() | float():
            raise ValueError("not an exact number")
        case int() | Decimal():
            return Decimal(value)
        case str() if _NUMBER.fullmatch(value.strip()):
            return Decimal(value.strip())
    raise ValueError("not a number")


def _formatted(value: object) -> Decimal:
    """Take an amount made for people: it may hold thousands separators."""
    return _exact(value.replace(",", "") if isinstance(value, str) else value)


def _whole(value: object) -> int:
    """Take a count that may come as a number or as text."""
    number = _exact(value)
    if number != number.to_integral_value():
        raise ValueError("not a whole number")
    return int(number)


def _text(value: object) -> str:
    """Take a text; null is the empty text, and a number keeps its digits."""
    match value:
        case None:
            return ""
        case str():
            return value
        case int() | Decimal() if not isinstance(value, bool):
            return str(value)
    raise ValueError("not a text")


def _moment(value: object) -> datetime | None:
    """Take ISO 8601 or unix seconds. What cannot be read is None: a time stamp never spoils a record."""
    text = str(value).strip()
    try:
        if _SECONDS.fullmatch(text):
            return datetime.fromtimestamp(float(text), UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Amount = Annotated[Decimal, BeforeValidator(_exact)]
Count = Annotated[int, BeforeValidator(_whole)]
Text = Annotated[str, BeforeValidator(_text)]
Moment = Annotated[datetime | None, BeforeValidator(_moment)]
Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Wire(BaseModel):
    """Frozen, known by both names, and silent about its input when it refuses it."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, hide_input_in_errors=True
    )


class Balance(_Wire):
    """What the merchant has in one currency."""

    currency: Annotated[Text, Field(alias="toCurrency", min_length=1)]
    amount: Amount
    total_received: Annotated[Amount, Field(alias="totalRecieved")]
    total_sent: Annotated[Amount, Field(alias="totalSent")]
    transaction_count: Annotated[Count, Field(alias="txnCount")]
    formatted_amount: Annotated[Decimal, BeforeValidator(_formatted), Field(alias="formattedAmount")]


class Withdrawal(_Wire):
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


class WithdrawalReceipt(_Wire):
    """The service's yes to a withdrawal. `raw` is its `data`; often it names no
    transaction (None) and no status (empty)."""

    transaction_id: str | None
    status: str
    raw: dict[str, Any]


class AccountHolder(_Wire):
    """Whose bank account it is."""

    account_name: Annotated[Text, Field(alias="accountname", min_length=1)]
    account_number: Annotated[Text, Field(alias="accountnumber")] = ""
    bank_code: Text = ""
    bank_name: Text = ""


class TransactionRecord(_Wire):
    """One line of the service's ledger. `status` is fulfilled, processing, failed, or the service's own word."""

    transaction_id: Annotated[Text, Field(alias="transactionId", min_length=1)]
    amount: Amount
    currency: Text = ""
    type: Text = ""
    status: Text = ""
    fee: Amount | None = None
    previous_balance: Annotated[Amount | None, Field(alias="prevBalance")] = None
    sender_previous_balance: Annotated[Amount | None, Field(alias="senderPrevbalance")] = None
    sender: Text = ""
    username: Text = ""
    from_currency: Annotated[Text, Field(alias="fromCurrency")] = ""
    from_amount: Annotated[Amount | None, Field(alias="fromAmount")] = None
    business_id: Annotated[Text, Field(alias="businessId")] = ""
    version: Text = ""
    is_from_registered_user: Annotated[bool | None, Field(alias="isFromRegUser")] = None
    date: Text = ""
    created_at: Annotated[Moment, Field(alias="createdAt")] = None
    updated_at: Annotated[Moment, Field(alias="updatedAt")] = None


class TransactionPage(_Wire):
    """One page of the ledger. `answered_at` is the service's own clock, from its Date header."""

    records: Annotated[list[TransactionRecord], Field(alias="data")]
    total: Count
    per_page: Annotated[Count, Field(alias="perPage")]
    page: Count
    pages: Count
    answered_at: datetime | None = None


__all__ = [
    "AccountHolder",
    "Balance",
    "Duration",
    "OtpType",
    "TransactionPage",
    "TransactionRecord",
    "TransactionType",
    "Withdrawal",
    "WithdrawalReceipt",
]
