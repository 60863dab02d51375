"""GET /transaction."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal

from django.db.models import QuerySet
from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books.movements import INTERNAL_TRANSFER, TRANSFER
from payments_gateway.sandbox.models import Transaction
from payments_gateway.sandbox.wire.amounts import amount_number
from payments_gateway.sandbox.wire.answers import envelope, operation
from payments_gateway.sandbox.wire.bodies import Body, read_query
from payments_gateway.sandbox.wire.credentials import BUSINESS_ID
from payments_gateway.sandbox.wire.fields import Whole

DURATIONS = {
    "one day": timedelta(days=1),
    "one week": timedelta(days=7),
    "one month": timedelta(days=30),
    "one year": timedelta(days=365),
}


class TransactionQuery(Body):
    """Query of GET /transaction. The specification allows no filter by USDT; those records come without a filter."""

    currency: Literal["NGN", "USD"] | None = None
    type: Literal["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"] | None = None
    duration: Literal["one day", "one week", "one month", "one year"] | None = None
    page: Annotated[Whole, Field(ge=1)] = 1
    limit: Annotated[Whole, Field(ge=1, le=500)] = 20


@operation("GET")
def transactions(request: HttpRequest) -> HttpResponse:
    """One page of transaction records, newest first; a page beyond the last is empty."""
    query = read_query(request, TransactionQuery)
    return envelope("Transactions retrieved", page_of(selected(query), query.page, query.limit))


def selected(query: TransactionQuery) -> QuerySet[Transaction]:
    """The records that the filters ask for, in no order yet."""
    records = Transaction.objects.all()
    if query.currency:
        records = records.filter(currency=query.currency)
    if query.type:
        records = records.filter(type=query.type)
    if query.duration:
        records = records.filter(created_at__gte=clock.now() - DURATIONS[query.duration])
    return records


@atomic
def page_of(records: QuerySet[Transaction], page: int, limit: int) -> dict[str, object]:
    """The page wrapper of the specification. Atomic, so that `total` and the records are of one moment."""
    total = records.count()
    first = (page - 1) * limit
    found = records.order_by("-id")[first : first + limit] if first < total else []
    return {
        "data": [transaction_record(record) for record in found],
        "total": total,
        "perPage": limit,
        "page": page,
        "pages": -(-total // limit),
    }


def transaction_record(record: Transaction) -> dict[str, object]:
    """A transaction record of the specification. The balance of another sender is not the merchant's to see: 0."""
    previous_balance = amount_number(record.previous_balance, record.currency)
    return {
        "transactionId": record.transaction_id,
        "currency": record.currency,
        "version": "v2",
        "sender": record.sender,
        "isFromRegUser": record.type in {TRANSFER, INTERNAL_TRANSFER},
        "prevBalance": previous_balance,
        "senderPrevbalance": Decimal(0) if record.incoming else previous_balance,
        "type": record.type,
        "status": record.status,
        "businessId": BUSINESS_ID,
        "date": record.created_at.date().isoformat(),
        "fromCurrency": record.from_currency,
        "fromAmount": amount_number(record.from_amount, record.from_currency),
        "amount": amount_number(record.amount, record.currency),
        "username": record.username,
        "fee": amount_number(record.fee, record.currency),
        "createdAt": clock.stamp(record.created_at),
        "updatedAt": clock.stamp(record.updated_at),
    }
