"""When withdrawals stop being `processing`: lazily, before each request that could see them."""

from collections.abc import Callable
from datetime import timedelta

from django.db.models import QuerySet
from django.db.transaction import atomic
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from payments_gateway.sandbox import clock, ledger
from payments_gateway.sandbox.models import Simulation, Status, Transaction


class SettlementMiddleware:
    """Settles what is due before the request is answered, so that nobody ever sees a settlement that is late."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if _open().exists():
            settle_due()
        return self.get_response(request)


@atomic(durable=True)
def settle_due() -> int:
    """Settle withdrawals older than the option `settle_after`; none while that is off. How many is returned."""
    settle_after = Simulation.objects.get().settle_after
    if settle_after is None:
        return 0
    return _settle(_open().filter(created_at__lte=clock.now() - timedelta(seconds=settle_after)), failed=None)


@atomic(durable=True)
def settle_now(*, failed: bool | None = None) -> int:
    """Settle every open withdrawal, due or not; `failed` overrides how each would have ended."""
    return _settle(_open(), failed=failed)


def _open() -> QuerySet[Transaction]:
    return Transaction.objects.filter(status=Status.PROCESSING)


def _settle(records: QuerySet[Transaction], *, failed: bool | None) -> int:
    settled = 0
    for record in records.select_related("withdrawal").order_by("id"):
        ledger.settle(record, failed=record.withdrawal.will_fail if failed is None else failed)
        settled += 1
    return settled
