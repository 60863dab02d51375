"""POST /payment: create an off-ramp payment."""

from typing import Literal

from django.http import HttpRequest, HttpResponse
from pydantic import ConfigDict, Field

from payments_gateway.sandbox import BUSINESS_ID
from payments_gateway.sandbox.amounts import minor_units_of
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    AccountNumber,
    ApiRequest,
    BankCode,
    EmailAddress,
    ExactNumber,
    PrintableText,
    Reference,
    Username,
    envelope,
    read_body,
    validated,
)
from payments_gateway.sandbox.books import payments
from payments_gateway.sandbox.books.orders import DestinationAccount
from payments_gateway.sandbox.books.rates import PaymentTerms
from payments_gateway.sandbox.books.records import payment_record
from payments_gateway.sandbox.errors import refused_member
from payments_gateway.sandbox.models import Payment
from payments_gateway.sandbox.settings import PROFILE


class CreatePaymentRequest(ApiRequest):
    """Body of POST /payment. The members required by a payment type have models of their own."""

    business_id: PrintableText
    incoming_currency: Literal["USDT"]
    outgoing_currency: Literal["NGN", "USD"]
    customer_email: EmailAddress
    payment_type: Literal["profile", "bank"]
    reference: Reference | None = None
    incoming_amount: ExactNumber | None = None
    outgoing_amount: ExactNumber | None = None
    rate_key: Reference | None = None
    service_username: Username | None = Field(default=None, alias=PROFILE.service_username_member)
    country: PrintableText | None = None
    account_number: AccountNumber | None = None
    account_name: PrintableText | None = None
    bank: PrintableText | None = None
    bank_code: BankCode | None = None


class BankPayoutMembers(ApiRequest):
    """Members required for a payment to a bank account."""

    model_config = ConfigDict(extra="ignore")

    country: PrintableText
    account_number: AccountNumber
    account_name: PrintableText
    bank: PrintableText
    bank_code: BankCode


class UserPayoutMembers(ApiRequest):
    """Members required for a payment to a user of the provider."""

    model_config = ConfigDict(extra="ignore")

    service_username: Username = Field(alias=PROFILE.service_username_member)


@api_view("POST")
def create(request: HttpRequest) -> HttpResponse:
    body = read_body(request, CreatePaymentRequest)
    if body.business_id != BUSINESS_ID:
        raise refused_member("businessId", "is not that of this merchant")
    payment = payments.create(
        _terms(body), _payout(body), reference=body.reference or "", customer_email=body.customer_email
    )
    return envelope("Payment created", payment_with_id(payment))


def payment_with_id(payment: Payment) -> dict[str, object]:
    """The payment of the specification."""
    return {"_id": payment.payment_id, **payment_record(payment)}


def _terms(body: CreatePaymentRequest) -> PaymentTerms:
    incoming, outgoing = body.incoming_amount, body.outgoing_amount
    return PaymentTerms(
        body.incoming_currency,
        body.outgoing_currency,
        None if incoming is None else minor_units_of(incoming, body.incoming_currency, "incomingAmount"),
        None if outgoing is None else minor_units_of(outgoing, body.outgoing_currency, "outgoingAmount"),
        body.rate_key or "",
    )


def _payout(body: CreatePaymentRequest) -> payments.Payout:
    members = body.model_dump(by_alias=True, exclude_none=True)
    if body.payment_type == payments.USER_PAYOUT:
        return payments.Payout(username=validated(UserPayoutMembers, members).service_username)
    bank = validated(BankPayoutMembers, members)
    account = DestinationAccount(bank.account_number, bank.account_name, bank.bank, bank.bank_code)
    return payments.Payout(account, bank.country)
