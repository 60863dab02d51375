"""The control API of the sandbox, under /_sandbox/. The real provider has nothing like it.

JSON in, JSON out, no credentials. Members of the API are spelled as in the API; options and faults in snake case.
An invalid body is rejected with 400 and a message that names the wrong member; nothing is changed then.
Requests that a browser sends on behalf of another site are rejected with 403 (guard.py).

GET    /_sandbox/               the console: a page for people; /_sandbox/watch has no forms and refreshes itself

GET    /_sandbox/otp            {"totp", "secondsLeft", "used", "otp", "secret"}: the current one-time codes
GET    /_sandbox/options        the current options
POST   /_sandbox/options        change some of them: settle_after (seconds; null: never by itself), otp_required,
                                token_reuse (a code may be used again), fail_next (how many of the next orders fail),
                                customer_pays_after (seconds after which customers pay payments; null: never)
POST   /_sandbox/settle         settle all pending orders; {"outcome": "fullfiled" | "failed"} overrides how each ends
POST   /_sandbox/reset          back to the seeded history; options as at the start, a new code of type otp, the first
                                API key alone, no callback URL, no deliveries, no faults, real time

GET    /_sandbox/ledger         what the provider executed since its seed (books/ground_truth.py)
                                {"debits": {"count", "amounts"}, "orders": [{"kind", …}], "withdrawals": […],
                                "payments": […], "balances": {…}, "differences": […]}

GET    /_sandbox/clock          {"now", "wall", "aheadSeconds"}: the provider's clock and real time
POST   /_sandbox/clock          {"advance": seconds}: advance the provider's clock, and settle what is due by then
POST   /_sandbox/deposits       {"currency", "amount", "sender"}: credit a deposit; amounts are text, as in the API
POST   /_sandbox/payments       {"reference", "amount"}: a customer pays; without amount, what is still missing
GET    /_sandbox/kyc            {"completed"}
POST   /_sandbox/kyc            {"completed": true | false}

GET    /_sandbox/webhooks       {"callbackUrl", "deliveries": […]}, newest first; ?limit=50, at most 500
GET    /_sandbox/webhooks/keys  {"keys": [{"pem", "madeAt"}]}: the public signing keys, newest first
POST   /_sandbox/webhooks/keys  create a new key; the previous one signs every other delivery for an hour
GET    /_sandbox/webhooks/faults     {"faults": {kind: {"left", "applied", …}}}
POST   /_sandbox/webhooks/faults     a fault of the next `deliveries`: {"kind": "duplicate", "copies"},
                                     {"kind": "reorder"}, {"kind": "delay", "seconds"}, {"kind": "forge", "forgery"}
DELETE /_sandbox/webhooks/faults     remove them all

GET    /_sandbox/faults         {"faults": [{"id", "kind", …, "hits", "left", "passed"}]}, oldest first
POST   /_sandbox/faults         {"operation", "kind", …}: provoke one; see ../faults/definitions.py for the kinds
DELETE /_sandbox/faults         remove all; held requests continue
DELETE /_sandbox/faults/<id>    remove this one

Options, faults of requests and KYC last until the next start or reset; faults of deliveries until a reset.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Literal

from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from payments_gateway.sandbox import clock, lifecycle
from payments_gateway.sandbox.amounts import minor_units
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    AmountText,
    ApiRequest,
    ExactNumber,
    PrintableText,
    WholeNumber,
    json_response,
    read_body,
    read_optional_body,
    read_query,
    validated,
)
from payments_gateway.sandbox.books import ground_truth, ledger, orders, settlement
from payments_gateway.sandbox.books.records import payment_record, transaction_record
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.definitions import FaultMembers, parse_fault
from payments_gateway.sandbox.faults.registry import FAULTS, ActiveFault
from payments_gateway.sandbox.lifecycle import (
    advance_clock,
    balances,
    current_codes,
    current_options,
    pay_as_customer,
    reset_to_seed,
)
from payments_gateway.sandbox.merchant import details as merchant_details
from payments_gateway.sandbox.models import Forgery
from payments_gateway.sandbox.webhooks import outbox, signing


class ControlRequest(BaseModel):
    """A body of the control API: options and faults in snake case, members of the API as in the API."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Seconds = Annotated[ExactNumber, Field(ge=0, le=31_536_000)]


class OptionsRequest(ControlRequest):
    """Body of POST /_sandbox/options: missing members stay unchanged."""

    settle_after: Seconds | None = None
    otp_required: bool = True
    token_reuse: bool = False
    fail_next: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    customer_pays_after: Seconds | None = None


class SettleRequest(ControlRequest):
    """Body of POST /_sandbox/settle."""

    outcome: Literal["fullfiled", "failed"] | None = None


@api_view("GET", credentials=False)
def one_time_codes(request: HttpRequest) -> HttpResponse:
    """The one-time codes that the simulated provider accepts now."""
    return json_response(current_codes())


@api_view("GET", "POST", credentials=False)
def options(request: HttpRequest) -> HttpResponse:
    """The current options, after the requested change, if any."""
    if request.method == "POST":
        body = read_body(request, OptionsRequest)
        lifecycle.change_options(body.model_dump(include=body.model_fields_set))
    return json_response(current_options())


@api_view("POST", credentials=False)
def settle(request: HttpRequest) -> HttpResponse:
    """Settle pending orders, due or not."""
    outcome = read_optional_body(request, SettleRequest).outcome
    failed = None if outcome is None else outcome == "failed"
    return json_response({"settled": settlement.settle_now(failed=failed)})


@api_view("POST", credentials=False)
def reset(request: HttpRequest) -> HttpResponse:
    """Delete everything since the seed."""
    return json_response({"transactions": reset_to_seed()})


_WITHDRAWAL = "withdrawal"


@api_view("GET", credentials=False)
@atomic
def ledger_state(request: HttpRequest) -> HttpResponse:
    """The whole ledger, read at one moment.

    `orders` is every debit of the merchant, oldest first, with the operation as `kind`; `debits` is their
    number and sum, including fees, by currency. `withdrawals` are the withdrawals among them, without `kind`.
    `payments` are the payments by customers; they debit nothing. `differences` is empty if the books agree.
    """
    orders = ground_truth.debits()
    return json_response(
        {
            "debits": {"count": len(orders), "amounts": ground_truth.debit_totals()},
            "orders": orders,
            "withdrawals": [_drop_kind(order) for order in orders if order["kind"] == _WITHDRAWAL],
            "payments": ground_truth.payments(),
            "balances": balances(),
            "differences": ledger.differences(),
        }
    )


def _drop_kind(order: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in order.items() if name != "kind"}


class ClockRequest(ControlRequest):
    """Body of POST /_sandbox/clock."""

    advance: Annotated[ExactNumber, Field(ge=0, le=10_000_000_000)]


class DepositRequest(ControlRequest):
    """Body of POST /_sandbox/deposits."""

    currency: Literal["NGN", "USD", "USDT", "USDC", "BTC"]
    amount: AmountText
    sender: PrintableText


class PayInRequest(ControlRequest):
    """Body of POST /_sandbox/payments."""

    reference: Annotated[str, Field(min_length=1, max_length=80)]
    amount: AmountText | None = None


class KycRequest(ControlRequest):
    """Body of POST /_sandbox/kyc."""

    completed: bool


@api_view("GET", "POST", credentials=False)
def clock_state(request: HttpRequest) -> HttpResponse:
    """The current time, after the requested step, if any."""
    if request.method == "POST":
        advance_clock(float(read_body(request, ClockRequest).advance))
    return json_response(
        {
            "now": clock.iso_timestamp(clock.now()),
            "wall": clock.iso_timestamp(clock.real_now()),
            "aheadSeconds": round(clock.offset().total_seconds()),
        }
    )


@api_view("POST", credentials=False)
def deposits(request: HttpRequest) -> HttpResponse:
    """Credit a deposit and return its transaction record."""
    body = read_body(request, DepositRequest)
    amount = minor_units(body.amount, body.currency)
    return json_response(transaction_record(orders.deposit(body.currency, amount, body.sender)), status=201)


@api_view("POST", credentials=False)
def pay_in(request: HttpRequest) -> HttpResponse:
    """Pay as a customer and return the payment in its new state."""
    body = read_body(request, PayInRequest)
    payment = pay_as_customer(body.reference, body.amount)
    return json_response({"_id": payment.payment_id, **payment_record(payment)})


@api_view("GET", "POST", credentials=False)
def kyc(request: HttpRequest) -> HttpResponse:
    """Whether the merchant has completed KYC, after the requested change, if any."""
    if request.method == "POST":
        merchant_details.set_kyc(read_body(request, KycRequest).completed)
    return json_response({"completed": merchant_details.kyc()})


@api_view("GET", "POST", "DELETE", credentials=False)
def faults(request: HttpRequest) -> HttpResponse:
    """List all faults (GET), add one (POST), or remove all (DELETE)."""
    if request.method == "POST":
        return json_response(
            fault_json(FAULTS.add(parse_fault(read_body(request, FaultMembers)))), status=201
        )
    if request.method == "DELETE":
        return json_response({"removed": FAULTS.clear(abandon=False)})
    return json_response({"faults": [fault_json(fault) for fault in FAULTS.listed()]})


@api_view("DELETE", credentials=False)
def fault(request: HttpRequest, fault_id: int) -> HttpResponse:
    """Remove this fault and release the requests that it holds."""
    if not FAULTS.remove(fault_id):
        raise RefusedError(404, f"there is no fault {fault_id}")
    return json_response({"removed": 1})


def fault_json(fault: ActiveFault) -> Mapping[str, object]:
    """The fault as requested, with its counters."""
    return {
        "id": fault.id,
        **fault.definition.model_dump(),
        "since": clock.iso_timestamp(fault.since),
        "hits": fault.hits,
        "left": fault.left,
        "passed": fault.passed,
    }


_Count = Annotated[int, Field(ge=0, le=100_000)]


class DeliveriesQuery(ApiRequest):
    """Query of GET /_sandbox/webhooks."""

    limit: Annotated[WholeNumber, Field(ge=1, le=500)] = 50


class DeliveryFaultRequest(ControlRequest):
    """A fault of the next `deliveries`; zero removes it."""

    kind: str
    deliveries: _Count = 1

    @abstractmethod
    def activate(self) -> None:
        """Activate the fault."""


class DuplicateDeliveries(DeliveryFaultRequest):
    """Each delivery is sent this many additional times."""

    copies: Annotated[int, Field(ge=0, le=1000)] = 1

    def activate(self) -> None:
        outbox.duplicate_next(self.copies, deliveries=self.deliveries)


class ReorderDeliveries(DeliveryFaultRequest):
    """The deliveries are held until the last one was created, and sent in reverse order."""

    def activate(self) -> None:
        outbox.reorder_next(self.deliveries)


class DelayDeliveries(DeliveryFaultRequest):
    """Each delivery is sent this many seconds later."""

    seconds: Annotated[ExactNumber, Field(ge=0, le=31_536_000)]

    def activate(self) -> None:
        outbox.delay_next(float(self.seconds), deliveries=self.deliveries)


class ForgeDeliveries(DeliveryFaultRequest):
    """Each delivery is forged in this way."""

    forgery: Literal[
        "wrong_signature", "stranger", "unsigned", "malformed", "tampered_data", "tampered_event"
    ]

    def activate(self) -> None:
        outbox.forge_next(Forgery(self.forgery), deliveries=self.deliveries)


_FAULT_REQUESTS: Mapping[str, type[DeliveryFaultRequest]] = {
    "duplicate": DuplicateDeliveries,
    "reorder": ReorderDeliveries,
    "delay": DelayDeliveries,
    "forge": ForgeDeliveries,
}


class DeliveryFaultMembers(BaseModel):
    """The member that selects the kind of fault."""

    model_config = ConfigDict(strict=True, extra="allow")

    kind: Literal["duplicate", "reorder", "delay", "forge"]


@api_view("GET", credentials=False)
def webhook_deliveries(request: HttpRequest) -> HttpResponse:
    """The callback URL, and the latest deliveries with every attempt."""
    limit = read_query(request, DeliveriesQuery).limit
    return json_response(
        {"callbackUrl": merchant_details.callback_url(), "deliveries": outbox.list_deliveries(limit)}
    )


@api_view("GET", "POST", credentials=False)
def webhook_keys(request: HttpRequest) -> HttpResponse:
    """The public keys, after a rotation if requested."""
    return json_response(
        {"keys": signing.rotate_key() if request.method == "POST" else signing.public_keys()}
    )


@api_view("GET", "POST", "DELETE", credentials=False)
def webhook_faults(request: HttpRequest) -> HttpResponse:
    """The delivery faults, after the requested change, if any."""
    if request.method == "POST":
        members = read_body(request, DeliveryFaultMembers)
        fault = validated(
            _FAULT_REQUESTS[members.kind], {**(members.model_extra or {}), "kind": members.kind}
        )
        fault.activate()
    if request.method == "DELETE":
        outbox.clear_delivery_faults()
    return json_response({"faults": outbox.delivery_faults()})
