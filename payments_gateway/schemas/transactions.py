"""Responses under /transaction, and the webhook data of a transaction."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from payments_gateway.schemas.fields import Amount, Count, Flag, OptionalAmount, Text, Timestamp, WireModel

TransactionType = Literal["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"]
Duration = Literal["one day", "one week", "one month", "one year"]


class TransactionRecord(WireModel):
    """One line of the service's ledger. `status` is fulfilled, processing, failed, or the service's own word."""

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
    """One page of the ledger. `answered_at` is the service's own clock, from its Date header."""

    records: Annotated[list[TransactionRecord], Field(alias="data")]
    total: Count
    per_page: Annotated[Count, Field(alias="perPage")]
    page: Count
    pages: Count
    answered_at: datetime | None = None


class TransactionSummary(WireModel):
    """Totals of the transactions that were asked for, with one page of them.

    The specification does not say in which currency `volume` or in which unit `duration` is.
    """

    page: TransactionPage
    volume: Amount
    transaction_count: Annotated[Count, Field(alias="txnCount")]
    duration: OptionalAmount = None


class TransactionUpdate(TransactionRecord):
    """The data of `Transaction updated`: the record as the sender says it now is, to be read again at the service."""

    session_id: Text = ""
    reference: Text = ""
    failure_reason: Text = ""
