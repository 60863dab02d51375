"""Transaction records, transfer details and payments in the format of the API; lag of the transaction list.

A fault can make the list lag: `lagging` hides the newest records from `visible` while one request is served.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import QuerySet

from payments_gateway.sandbox import API_USER, BUSINESS_ID, clock
from payments_gateway.sandbox.amounts import amount_number, amount_text
from payments_gateway.sandbox.books.movements import INTERNAL_TRANSFER, TRANSFER
from payments_gateway.sandbox.models import Payment, Transaction, WalletTransfer


def transaction_record(record: Transaction) -> dict[str, object]:
    """A transaction record of the specification. Another sender's balance is not disclosed: 0."""
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
        "createdAt": clock.iso_timestamp(record.created_at),
        "updatedAt": clock.iso_timestamp(record.updated_at),
    }


def transfer_detail(given: Transaction, received: Transaction | None = None) -> dict[str, object]:
    """A transfer detail of the specification, amounts as text. Without `received`, both sides are equal."""
    received = received or given
    return {
        "transactionId": given.transaction_id,
        "sender": given.sender,
        "status": given.status,
        "date": given.created_at.date().isoformat(),
        "toCurrency": received.currency,
        "fromCurrency": given.currency,
        "receiveAmount": amount_text(received.amount, received.currency),
        "amount": amount_text(given.amount, given.currency),
        "username": received.username,
        "senderPrevbalance": amount_text(given.previous_balance, given.currency),
    }


def wallet_transfer_detail(record: Transaction, order: WalletTransfer) -> dict[str, object]:
    """A wallet transfer detail of the specification, amounts as numbers."""
    amount = amount_number(record.amount, record.currency)
    return {
        "transactionId": record.transaction_id,
        "sender": record.sender,
        "type": record.type,
        "status": record.status,
        "date": record.created_at.date().isoformat(),
        "toCurrency": record.currency,
        "fromCurrency": record.currency,
        "receiveAmount": amount,
        "amount": amount,
        "address": order.address,
        "memo": order.memo,
        "username": record.username,
    }


def payment_record(payment: Payment) -> dict[str, object]:
    """A payment of the specification, without `_id`, as in webhooks."""
    incoming, outgoing = payment.incoming_currency, payment.outgoing_currency
    return {
        "businessId": BUSINESS_ID,
        "reference": payment.reference,
        "incomingCurrency": incoming,
        "outgoingCurrency": outgoing,
        "incomingAmount": amount_number(payment.incoming_amount, incoming),
        "outgoingAmount": amount_number(payment.outgoing_amount, outgoing),
        "confirmedAmount": amount_number(payment.confirmed_amount, incoming),
        "unconfirmedAmount": amount_number(payment.unconfirmed_amount, incoming),
        "state": payment.state,
        "expTime": clock.iso_timestamp(payment.expires_at),
        "address": payment.address,
        "customerEmail": payment.customer_email,
        "paymentType": payment.payment_type,
        "account": payment.destination,
        "rate": Decimal(payment.rate),
        "threadTS": f"{payment.created_at.timestamp():.6f}",
        "senderUsername": API_USER,
        "createdAt": clock.iso_timestamp(payment.created_at),
        "updatedAt": clock.iso_timestamp(payment.updated_at),
    }


Lag = tuple[datetime, timedelta]
_LAGS: ContextVar[Sequence[Lag]] = ContextVar("lags", default=())


def visible(records: QuerySet[Transaction]) -> QuerySet[Transaction]:
    """The records that the list shows now: all, unless a fault `hide_record_for` hits this request."""
    for since, behind in _LAGS.get():
        records = records.exclude(created_at__gte=since, created_at__gt=clock.now() - behind)
    return records


@contextmanager
def lagging(lags: Sequence[Lag]) -> Iterator[None]:
    """Make the list lag within this context, in this thread."""
    token = _LAGS.set(lags)
    try:
        yield
    finally:
        _LAGS.reset(token)
