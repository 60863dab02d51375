"""POST /payment."""

from typing import Literal

from django.http import HttpRequest, HttpResponse
from pydantic import ConfigDict

from payments_gateway.sandbox.books import payments
from payments_gateway.sandbox.books.orders import BankAccount
from payments_gateway.sandbox.books.records import payment_record
from payments_gateway.sandbox.books.terms import Terms
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.models import Payment
from payments_gateway.sandbox.wire.amounts import minor_units_of
from payments_gateway.sandbox.wire.answers import envelope
from payments_gateway.sandbox.wire.bodies import Body, read_body, validated
from payments_gateway.sandbox.wire.credentials import BUSINESS_ID
from payments_gateway.sandbox.wire.fields import (
    AccountNumber,
    BankCode,
    Crypto,
    Email,
    Name,
    Number,
    Reference,
    Username,
)
from payments_gateway.sandbox.wire.refusals import refused_member


class PaymentBody(Body):
    """Body of POST /payment. What its payment type demands beyond this is a body of its own."""

    business_id: Name
    incoming_currency: Crypto
    outgoing_currency: Literal["NGN", "USD"]
    customer_email: Email
    payment_type: Literal["profile", "bank"]
    reference: Reference | None = None
    incoming_amount: Number | None = None
    outgoing_amount: Number | None = None
    rate_key: Reference | None = None
    service_username: Username | None = None
    country: Name | None = None
    account_number: AccountNumber | None = None
    account_name: Name | None = None
    bank: Name | None = None
    bank_code: BankCode | None = None


class BankBody(Body):
    """What a payment to a bank account must have."""

    model_config = ConfigDict(extra="ignore")

    country: Name
    account_number: AccountNumber
    account_name: Name
    bank: Name
    bank_code: BankCode


class ProfileBody(Body):
    """What a payment to a user of the service must have."""

    model_config = ConfigDict(extra="ignore")

    service_username: Username


@operation("POST")
def create(request: HttpRequest) -> HttpResponse:
    """Accept an off-ramp payment."""
    body = read_body(request, PaymentBody)
    if body.business_id != BUSINESS_ID:
        raise refused_member("businessId", "is not that of this merchant")
    payment = payments.create(
        _terms(body), _payout(body), reference=body.reference or "", customer_email=body.customer_email
    )
    return envelope("Payment created", payment_wire(payment))


def payment_wire(payment: Payment) -> dict[str, object]:
    """The payment of the specification."""
    return {"_id": payment.payment_id, **payment_record(payment)}


def _terms(body: PaymentBody) -> Terms:
    incoming, outgoing = body.incoming_amount, body.outgoing_amount
    return Terms(
        body.incoming_currency,
        body.outgoing_currency,
        None if incoming is None else minor_units_of(incoming, body.incoming_currency, "incomingAmount"),
        None if outgoing is None else minor_units_of(outgoing, body.outgoing_currency, "outgoingAmount"),
        body.rate_key or "",
    )


def _payout(body: PaymentBody) -> payments.Payout:
    members = body.model_dump(by_alias=True, exclude_none=True)
    if body.payment_type == payments.PROFILE:
        return payments.Payout(username=validated(ProfileBody, members).service_username)
    bank = validated(BankBody, members)
    account = BankAccount(bank.account_number, bank.account_name, bank.bank, bank.bank_code)
    return payments.Payout(account, bank.country)
