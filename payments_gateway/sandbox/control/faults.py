"""Faults on demand, by the control API: add one, list them, take one or all away. The kinds: `faults/__init__.py`."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.faults.orders import Kind, order_of
from payments_gateway.sandbox.faults.plan import PLAN, Fault
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.answers import answer
from payments_gateway.sandbox.wire.bodies import read_body
from payments_gateway.sandbox.wire.errors import RefusedError


@operation("GET", "POST", "DELETE", credentials=False)
def faults(request: HttpRequest) -> HttpResponse:
    """All of them (GET), one more (POST), or none (DELETE)."""
    if request.method == "POST":
        return answer(described(PLAN.add(order_of(read_body(request, Kind)))), status=201)
    if request.method == "DELETE":
        return answer({"removed": PLAN.clear(abandon=False)})
    return answer({"faults": [described(fault) for fault in PLAN.listed()]})


@operation("DELETE", credentials=False)
def fault(request: HttpRequest, fault_id: int) -> HttpResponse:
    """Take this fault away; the requests that it holds go on."""
    if not PLAN.remove(fault_id):
        raise RefusedError(404, f"there is no fault {fault_id}")
    return answer({"removed": 1})


def described(fault: Fault) -> Mapping[str, object]:
    """The fault as it was ordered, with its counters."""
    return {
        "id": fault.id,
        **fault.order.model_dump(),
        "since": clock.stamp(fault.since),
        "hits": fault.hits,
        "left": fault.left,
        "passed": fault.passed,
    }
