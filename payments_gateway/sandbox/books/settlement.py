"""When withdrawals stop being `processing`: lazily, before each request that could see them."""

from collections.abc import Callable
from datetime import timedelta

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.transaction import atomic
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books import ledger
from payments_gateway.sandbox.models import Simulation, Status, Withdrawal

_SLOW_SUFFIX = "88"
_SLOW_FOR = timedelta(days=1)
_OPEN_EXISTS = "SELECT EXISTS (SELECT 1 FROM sandbox_transaction WHERE status = 'processing')"


class SettlementMiddleware:
    """Settles what is due before the request is answered, so that nobody ever sees a settlement that is late."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if _some_are_open():
            settle_due()
        return self.get_response(request)


@atomic(durable=True)
def settle_due() -> int:
    """Settle withdrawals older than the option `settle_after`; none while that is off. How many is returned.

    A bank that takes a day is simulated too: by account numbers that end in 88.
    """
    settle_after = Simulation.objects.get().settle_after
    if settle_after is None:
        return 0
    due = _open().filter(transaction__created_at__lte=clock.now() - timedelta(seconds=settle_after))
    slow = Q(account_number__endswith=_SLOW_SUFFIX, transaction__created_at__gt=clock.now() - _SLOW_FOR)
    return _settle(due.exclude(slow), failed=None)


@atomic(durable=True)
def settle_now(*, failed: bool | None = None) -> int:
    """Settle every open withdrawal, due or not; `failed` overrides how each would have ended."""
    return _settle(_open(), failed=failed)


def _some_are_open() -> bool:
    # Asked before every request, so in SQL: the ORM would take longer to build this than SQLite to answer it.
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_EXISTS)
        return bool(cursor.fetchone()[0])


def _open() -> QuerySet[Withdrawal]:
    return Withdrawal.objects.filter(transaction__status=Status.PROCESSING).select_related("transaction")


def _settle(withdrawals: QuerySet[Withdrawal], *, failed: bool | None) -> int:
    settled = 0
    for withdrawal in withdrawals.order_by("transaction_id"):
        ledger.settle(withdrawal.transaction, failed=withdrawal.will_fail if failed is None else failed)
        settled += 1
    return settled
