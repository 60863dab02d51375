"""Settle orders and advance payments that are due: before each request and each round of the delivery thread.

Orders in `processing` settle `settle_after` seconds after they were accepted, payments as described in
`payments.py`. Orders to a destination ending in 88 take an hour.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import QuerySet
from django.db.transaction import atomic
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books import ledger, orders, payments
from payments_gateway.sandbox.models import (
    SandboxState,
    Status,
    Transaction,
    Transfer,
    WalletTransfer,
    Withdrawal,
)

OrderRow = Withdrawal | Transfer | WalletTransfer

_ORDERS = ("withdrawal", "transfer", "wallet_transfer")
_DUE_QUERY = """
    SELECT settle_after,
        (SELECT MIN(created_at) FROM sandbox_transaction WHERE status = 'processing'),
        EXISTS (SELECT 1 FROM sandbox_payment WHERE due_at <= %s)
    FROM sandbox_sandboxstate
"""


class SettlementMiddleware:
    """Settles what is due before each request, so that no client observes a late settlement."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        settle_if_due()
        return self.get_response(request)


def settle_if_due() -> None:
    """Settle what is due; one cheap query if nothing is pending."""
    if _something_is_due():
        settle_due()


@atomic(durable=True)
def settle_due() -> int:
    """Settle orders and advance payments to the current time. Return how many reached a final state.

    While the option `settle_after` is off, nothing is paid out; payments are still confirmed and still
    expire.
    """
    seconds = SandboxState.objects.get().settle_after
    settle_after = None if seconds is None else timedelta(seconds=seconds)
    ended = payments.advance_payments(settle_after)
    if settle_after is None:
        return ended
    due_records = _processing().filter(created_at__lte=clock.now() - settle_after)
    return ended + _settle([record for record in due_records if not _is_slow(record)], failed=None)


@atomic(durable=True)
def settle_now(*, failed: bool | None = None) -> int:
    """Finish all pending orders, due or not. Return how many; `failed` overrides how each would have ended.

    A payment is paid out if everything has arrived, confirmed or not; others keep waiting for their
    customers.
    """
    return payments.pay_out_now(failed=failed) + _settle(list(_processing()), failed=failed)


def order_of(record: Transaction) -> OrderRow | None:
    """The order of a record with its destination; None for records without one, and for conversions."""
    orders_of_record = (getattr(record, name, None) for name in _ORDERS)
    return next((order for order in orders_of_record if order is not None), None)


def _something_is_due() -> bool:
    # SQL, because it runs before every request: the ORM would take longer to build this than SQLite to run it.
    now = clock.now()
    with connection.cursor() as cursor:
        cursor.execute(_DUE_QUERY, [_stored(now)])
        settle_after, oldest, a_payment_is_due = cursor.fetchone()
    if oldest is None or settle_after is None:
        return bool(a_payment_is_due)
    return bool(a_payment_is_due or oldest <= _stored(now - timedelta(seconds=settle_after)))


def _stored(moment: datetime) -> str:
    """The time in the format of the columns, whose text order is chronological."""
    return str(connection.ops.adapt_datetimefield_value(moment))


def _processing() -> QuerySet[Transaction]:
    return Transaction.objects.filter(status=Status.PROCESSING).select_related(*_ORDERS).order_by("id")


def _is_slow(record: Transaction) -> bool:
    """Whether the destination takes an hour and the hour has not passed."""
    order = order_of(record)
    is_slow = order is not None and orders.settles_slowly(order.destination)
    return is_slow and clock.now() < record.created_at + orders.SLOW_SETTLEMENT


def _settle(records: list[Transaction], *, failed: bool | None) -> int:
    for record in records:
        order = order_of(record)
        ledger.settle(record, failed=(order is not None and order.will_fail) if failed is None else failed)
    return len(records)
