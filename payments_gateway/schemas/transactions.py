"""Responses under /transaction, and the webhook data of a transaction."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from payments_gateway.schemas.fields import Amount, Count, Flag, OptionalAmount, Text, Timestamp, WireModel

TransactionType = Literal["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"]


class TransactionRecord(WireModel):
    """One transaction. `status` is fulfilled, processing, failed, or the provider's own word."""

    transaction_id: Annotated[Text, Field(alias="transactionId", min_length=1)]
    amount: Amount
    currency: Text = ""
    type: Text = ""
    status: Text = ""
    fee: OptionalAmount = None
    previous_balance: Annotated[OptionalAmount, Field(alias="prevBalance")] = None
    sender_previous_balance: Annotated[OptionalAmount, Field(alias="senderPrevbalance")] = None
    sender: Text = ""
    username: Text = ""
    from_currency: Annotated[Text, Field(alias="fromCurrency")] = ""
    from_amount: Annotated[OptionalAmount, Field(alias="fromAmount")] = None
    business_id: Annotated[Text, Field(alias="businessId")] = ""
    version: Text = ""
    is_from_registered_user: Annotated[Flag, Field(alias="isFromRegUser")] = None
    date: Text = ""
    created_at: Annotated[Timestamp, Field(alias="createdAt")] = None
    updated_at: Annotated[Timestamp, Field(alias="updatedAt")] = None


class TransactionPage(WireModel):
    """One page of transactions. `answered_at` is the provider's clock, from the Date header."""

    records: Annotated[list[TransactionRecord], Field(alias="data")]
    total: Count
    per_page: Annotated[Count, Field(alias="perPage")]
    page: Count
    pages: Count
    answered_at: datetime | None = None


class TransactionSummary(WireModel):
    """Totals of the filtered transactions, with one page of them.

    The specification does not say in which currency `volume` is, nor the unit of `duration`.
    """

    page: TransactionPage
    volume: Amount
    transaction_count: Annotated[Count, Field(alias="txnCount")]
    duration: OptionalAmount = None


class TransactionUpdate(TransactionRecord):
    """The data of `Transaction updated`: a record as the webhook reports it, to be read again."""

    session_id: Text = ""
    reference: Text = ""
    failure_reason: Text = ""
