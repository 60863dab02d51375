"""Off-ramp payments: a customer pays crypto, the payout goes to a bank account or to a user of the provider."""

from functools import partial
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from payments_gateway.errors import InputError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import (
    Amount,
    LenientAmount,
    LenientText,
    OptionalId,
    ReceiptModel,
    RequestModel,
    RequiredText,
    Text,
    Timestamp,
    WireModel,
)
from payments_gateway.money import UnreadableError, check_quantity
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.responses import ParsedResponse
from payments_gateway.transport import Resource

#: Type of a payment -> members that the specification requires for it, beyond those of every payment.
REQUIRED_BY_TYPE = {
    "profile": ("service_username",),
    "bank": ("country", "account_number", "account_name", "bank", "bank_code"),
}

Email = Annotated[RequiredText, StringConstraints(max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")]


class PaymentRequest(RequestModel):
    """An off-ramp payment: a customer sends crypto, a bank account or user gets the payout.

    Requires at least one of the two amounts, each in its own currency. Type `profile` requires
    `service_username`; type `bank` requires country, account number and name, bank and bank code. `reference`
    is the merchant's own, and the only member by which a payment can be found again.
    """

    business_id: Annotated[RequiredText, Field(alias="businessId")]
    incoming_currency: Annotated[RequiredText, Field(alias="incomingCurrency")]
    outgoing_currency: Annotated[RequiredText, Field(alias="outgoingCurrency")]
    customer_email: Annotated[Email, Field(alias="customerEmail")]
    payment_type: Annotated[RequiredText, Field(alias="paymentType")]
    reference: RequiredText | None = None
    incoming_amount: Annotated[Amount | None, Field(alias="incomingAmount")] = None
    outgoing_amount: Annotated[Amount | None, Field(alias="outgoingAmount")] = None
    rate_key: Annotated[RequiredText | None, Field(alias="rateKey")] = None
    service_username: Annotated[RequiredText | None, Field(alias="serviceUsername")] = None
    country: RequiredText | None = None
    account_number: Annotated[RequiredText | None, Field(alias="accountNumber")] = None
    account_name: Annotated[RequiredText | None, Field(alias="accountName")] = None
    bank: RequiredText | None = None
    bank_code: Annotated[RequiredText | None, Field(alias="bankCode")] = None

    @model_validator(mode="after")
    def _amounts_can_be_moved(self) -> Self:
        if self.incoming_amount is None and self.outgoing_amount is None:
            raise InputError(_("A payment needs an incoming or an outgoing amount."))
        if self.incoming_amount is not None:
            check_quantity(self.incoming_amount, self.incoming_currency)
        if self.outgoing_amount is not None:
            check_quantity(self.outgoing_amount, self.outgoing_currency)
        return self

    @model_validator(mode="after")
    def _conditions_are_met(self) -> Self:
        missing = [
            name for name in REQUIRED_BY_TYPE.get(self.payment_type, ()) if getattr(self, name) is None
        ]
        if missing:
            needs = _("A payment of type {type} needs {members}.")
            raise InputError(needs, type=self.payment_type, members=", ".join(missing))
        return self

    def wire(self, profile: ProviderProfile) -> dict[str, object]:
        """Return the body of POST /payment: amounts as numbers, without members that are not set."""
        body: dict[str, object] = self.model_dump(
            by_alias=True, exclude_none=True, exclude={"service_username"}
        )
        username = self.service_username
        return body if username is None else body | {profile.service_username_member: username}


class Payment(ReceiptModel):
    """A payment as stored by the provider. Nothing is decided by `state`: its values are not documented."""

    id: Annotated[OptionalId, Field(alias="_id")] = None
    reference: LenientText = ""
    business_id: Annotated[LenientText, Field(alias="businessId")] = ""
    state: LenientText = ""
    payment_type: Annotated[LenientText, Field(alias="paymentType")] = ""
    address: LenientText = ""
    account: LenientText = ""
    incoming_currency: Annotated[LenientText, Field(alias="incomingCurrency")] = ""
    outgoing_currency: Annotated[LenientText, Field(alias="outgoingCurrency")] = ""
    incoming_amount: Annotated[LenientAmount, Field(alias="incomingAmount")] = None
    outgoing_amount: Annotated[LenientAmount, Field(alias="outgoingAmount")] = None
    confirmed_amount: Annotated[LenientAmount, Field(alias="confirmedAmount")] = None
    unconfirmed_amount: Annotated[LenientAmount, Field(alias="unconfirmedAmount")] = None
    rate: LenientAmount = None
    customer_email: Annotated[LenientText, Field(alias="customerEmail")] = ""
    sender_username: Annotated[LenientText, Field(alias="senderUsername")] = ""
    thread_timestamp: Annotated[LenientText, Field(alias="threadTS")] = ""
    ramp_reference: Annotated[LenientText, Field(alias="rampReference")] = ""  # not in the specification
    expires_at: Annotated[Timestamp, Field(alias="expTime")] = None
    created_at: Annotated[Timestamp, Field(alias="createdAt")] = None
    updated_at: Annotated[Timestamp, Field(alias="updatedAt")] = None


class PaymentUpdate(WireModel):
    """The data of `Payment created` and `Payment updated`. It has no id: a payment is found by its reference.

    Whether the provider reports the times is not documented; without them, or unreadable, they are None.
    """

    reference: Annotated[Text, Field(min_length=1)]
    state: Text = ""
    resolve_id: Text = ""
    incoming_currency: Annotated[Text, Field(alias="incomingCurrency")] = ""
    outgoing_currency: Annotated[Text, Field(alias="outgoingCurrency")] = ""
    incoming_amount: Annotated[Amount | None, Field(alias="incomingAmount")] = None
    outgoing_amount: Annotated[Amount | None, Field(alias="outgoingAmount")] = None
    created_at: Annotated[Timestamp, Field(alias="createdAt")] = None
    updated_at: Annotated[Timestamp, Field(alias="updatedAt")] = None


class Payments(Resource):
    """The operation under /payment."""

    def create(self, request: PaymentRequest) -> Payment:
        """Create an off-ramp payment (POST /payment). Amounts are sent as numbers; takes no one-time code.

        The result holds the address to pay to, and when it expires.

        Not repeatable: whether the provider rejects a second payment with the same `reference` is not
        documented, but the first one can be found by it. Raises RejectedError when the provider rejected the
        request, NotSentError when nothing was sent, OutcomeUnknownError otherwise; also for a success that
        names no payment at all (no id, reference or address), or one with another reference than the one
        sent. Specification: Endpoints, POST /payment; Payment.
        """
        into = partial(_parse_payment, request.reference)
        return self._transport.send_once("POST", "/payment", request.wire(self._profile), into=into)


def comparable_reference(reference: str) -> str:
    """The reference without its case, and with one blank between words: equal for what is the same reference.

    The specification does not say that a provider returns it unchanged.
    """
    return " ".join(reference.split()).casefold()


def _parse_payment(reference: str | None, response: ParsedResponse) -> Payment:
    """Read the created payment and check its reference; without one in the request the provider assigns it."""
    received = {"raw": response.data, "provider_message": response.message}
    payment = Payment.model_validate(response.data | received)
    named = payment.reference.strip()
    if not (payment.id or named or payment.address.strip()):
        raise UnreadableError(_("it contains no payment ID, reference or address"))
    is_other = comparable_reference(named) != comparable_reference(reference or "")
    if reference is not None and named and is_other:
        raise UnreadableError(_("it is about a payment with another reference"))
    return payment
