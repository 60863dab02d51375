"""GET /_sandbox/ledger: what the service was really asked to do since its seed, and whether its books agree."""

from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse

from payments_gateway.sandbox.books import ledger, oracle
from payments_gateway.sandbox.control.present import balances
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.answers import answer

_WITHDRAWAL = "withdrawal"


@operation("GET", credentials=False)
@atomic
def ledger_now(request: HttpRequest) -> HttpResponse:
    """Everything of one moment.

    `orders` is everything that took from the merchant, oldest first, and `kind` says by which operation; `debits`
    counts and adds it up, fees included, by currency. `withdrawals` are the withdrawals among them, without `kind`.
    `payments` are the payments that customers make; they take nothing. `differences` is empty when the books agree.
    """
    orders = oracle.debits()
    return answer(
        {
            "debits": {"count": len(orders), "amounts": oracle.debited()},
            "orders": orders,
            "withdrawals": [_without_kind(order) for order in orders if order["kind"] == _WITHDRAWAL],
            "payments": oracle.payments(),
            "balances": balances(),
            "differences": ledger.differences(),
        }
    )


def _without_kind(order: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in order.items() if name != "kind"}
