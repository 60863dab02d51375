"""GET /transaction and GET /transaction/summary."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal

from django.db.models import Count, QuerySet, Sum
from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.amounts import amount_number
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import ApiRequest, WholeNumber, envelope, read_query
from payments_gateway.sandbox.books.records import transaction_record, visible
from payments_gateway.sandbox.models import Transaction

DURATIONS = {
    "one day": timedelta(days=1),
    "one week": timedelta(days=7),
    "one month": timedelta(days=30),
    "one year": timedelta(days=365),
}


class TransactionQuery(ApiRequest):
    """Query of GET /transaction. The specification has no filter for USDT; unfiltered lists include it."""

    currency: Literal["NGN", "USD"] | None = None
    type: Literal["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"] | None = None
    duration: Literal["one day", "one week", "one month", "one year"] | None = None
    page: Annotated[WholeNumber, Field(ge=1)] = 1
    limit: Annotated[WholeNumber, Field(ge=1, le=500)] = 20


@api_view("GET")
def transactions(request: HttpRequest) -> HttpResponse:
    """One page of transaction records, newest first; a page beyond the last is empty."""
    query = read_query(request, TransactionQuery)
    return envelope("Transactions retrieved", page_of(filtered_transactions(query), query.page, query.limit))


def filtered_transactions(query: TransactionQuery) -> QuerySet[Transaction]:
    """The records that match the filters, not ordered."""
    records = Transaction.objects.all()
    if query.currency:
        records = records.filter(currency=query.currency)
    if query.type:
        records = records.filter(type=query.type)
    if query.duration:
        records = records.filter(created_at__gte=clock.now() - DURATIONS[query.duration])
    return visible(records)


@api_view("GET")
@atomic
def summary(request: HttpRequest) -> HttpResponse:
    """One page of the matching records, and a summary of all of them, read at the same moment."""
    query = read_query(request, TransactionQuery)
    records = filtered_transactions(query)
    page = page_of(records, query.page, query.limit)
    return envelope("Summary retrieved", {"txn": page, "summary": summary_of(records, query)})


def summary_of(records: QuerySet[Transaction], query: TransactionQuery) -> dict[str, object]:
    """The summary of the specification, over all pages.

    `volume` is the sum of the amounts, each in its own currency; `duration` is the requested days, 0 for all
    time.
    """
    totals = list(records.order_by().values("currency").annotate(units=Sum("amount"), count=Count("id")))
    volume = sum((amount_number(row["units"], row["currency"]) for row in totals), Decimal(0))
    return {
        "volume": volume,
        "txnCount": sum(row["count"] for row in totals),
        "duration": DURATIONS[query.duration].days if query.duration else 0,
    }


@atomic
def page_of(records: QuerySet[Transaction], page: int, limit: int) -> dict[str, object]:
    """The page wrapper of the specification. Atomic, so that `total` and the records are consistent."""
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
