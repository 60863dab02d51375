"""What happens around the service, on demand: time passes, money arrives, customers pay, the merchant is verified."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books import orders, payments, settlement
from payments_gateway.sandbox.control.bodies import ControlBody
from payments_gateway.sandbox.merchant import profile
from payments_gateway.sandbox.models import Payment
from payments_gateway.sandbox.webhooks import doorbell
from payments_gateway.sandbox.wire.amounts import amount_text, minor_units
from payments_gateway.sandbox.wire.answers import answer, operation
from payments_gateway.sandbox.wire.bodies import read_body
from payments_gateway.sandbox.wire.errors import RefusedError
from payments_gateway.sandbox.wire.fields import AmountText, Name, Number
from payments_gateway.sandbox.wire.records import payment_record, transaction_record


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


def let_time_pass(seconds: float) -> None:
    """Put the service's clock forward, settle what is due by then, and let webhooks go out that are."""
    clock.advance(seconds)
    settlement.settle_due()
    doorbell.ring()


def let_customer_pay(reference: str, amount: str | None) -> Payment:
    """A customer sends this amount to the address of a payment, or what is still missing.

    Raises RefusedError: 404 when there is no such payment, 400 or 409 as `books.payments.pay_in`.
    """
    payment = Payment.objects.filter(reference=reference).first()
    if payment is None:
        raise RefusedError(404, "there is no payment of this reference")
    currency = payment.incoming_currency
    missing = payment.incoming_amount - payment.confirmed_amount - payment.unconfirmed_amount
    return payments.pay_in(payment.payment_id, missing if amount is None else minor_units(amount, currency))


def missing_of(payment: Payment) -> str:
    """What the customer has still to send, as text."""
    missing = payment.incoming_amount - payment.confirmed_amount - payment.unconfirmed_amount
    return amount_text(max(missing, 0), payment.incoming_currency)
