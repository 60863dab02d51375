"""What happens around the service, on demand: time passes, money arrives, customers pay, the merchant is verified."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books import orders
from payments_gateway.sandbox.books.records import payment_record, transaction_record
from payments_gateway.sandbox.control.actions import let_customer_pay, let_time_pass
from payments_gateway.sandbox.control.bodies import ControlBody
from payments_gateway.sandbox.merchant import profile
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.amounts import minor_units
from payments_gateway.sandbox.wire.answers import answer
from payments_gateway.sandbox.wire.bodies import read_body
from payments_gateway.sandbox.wire.fields import AmountText, Name, Number


class ClockBody(ControlBody):
    """Body of POST /_sandbox/clock."""

    advance: Annotated[Number, Field(ge=0, le=10_000_000_000)]


class DepositBody(ControlBody):
    """Body of POST /_sandbox/deposits."""

    currency: Literal["NGN", "USD", "USDT"]
    amount: AmountText
    sender: Name


class PayInBody(ControlBody):
    """Body of POST /_sandbox/payments."""

    reference: Annotated[str, Field(min_length=1, max_length=80)]
    amount: AmountText | None = None


class KycBody(ControlBody):
    """Body of POST /_sandbox/kyc."""

    completed: bool


@operation("GET", "POST", credentials=False)
def clock_now(request: HttpRequest) -> HttpResponse:
    """What time it is, after a step forward if one was asked for."""
    if request.method == "POST":
        let_time_pass(float(read_body(request, ClockBody).advance))
    return answer(
        {
            "now": clock.stamp(clock.now()),
            "wall": clock.stamp(clock.wall()),
            "aheadSeconds": round(clock.ahead().total_seconds()),
        }
    )


@operation("POST", credentials=False)
def deposits(request: HttpRequest) -> HttpResponse:
    """Money arrives; the record of the transaction."""
    body = read_body(request, DepositBody)
    amount = minor_units(body.amount, body.currency)
    return answer(transaction_record(orders.deposit(body.currency, amount, body.sender)), status=201)


@operation("POST", credentials=False)
def pay_in(request: HttpRequest) -> HttpResponse:
    """A customer pays; the payment as it stands then."""
    body = read_body(request, PayInBody)
    payment = let_customer_pay(body.reference, body.amount)
    return answer({"_id": payment.payment_id, **payment_record(payment)})


@operation("GET", "POST", credentials=False)
def kyc(request: HttpRequest) -> HttpResponse:
    """Whether the merchant has completed KYC, after the change if one was asked for."""
    if request.method == "POST":
        profile.set_kyc(read_body(request, KycBody).completed)
    return answer({"completed": profile.kyc()})
