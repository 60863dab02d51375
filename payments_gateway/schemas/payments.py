"""What POST /payment takes and gives (specification: Payment, and the endpoint's conditions)."""

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from payments_gateway.dialect import Dialect
from payments_gateway.money import check_quantity
from payments_gateway.schemas.fields import (
    Amount,
    Filled,
    Identity,
    Moment,
    Receipt,
    Remark,
    Request,
    ToldAmount,
)

#: Type of a payment -> the members that the specification demands for it, beyond those of every payment.
CONDITIONAL = {
    "profile": ("service_username",),
    "bank": ("country", "account_number", "account_name", "bank", "bank_code"),
}

Email = Annotated[Filled, StringConstraints(max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")]


class PaymentRequest(Request):
    """An off-ramp payment: crypto comes in, the payout goes to a bank account or to a user of the service.

    At least one of the two amounts, each in its own currency. A payment of type `profile` needs
    `service_username`; one of type `bank` needs country, account number and name, bank and bank code.
    `reference` is the merchant's own, and the only thing by which a payment can be found again.
    """

    business_id: Annotated[Filled, Field(alias="businessId")]
    incoming_currency: Annotated[Filled, Field(alias="incomingCurrency")]
    outgoing_currency: Annotated[Filled, Field(alias="outgoingCurrency")]
    customer_email: Annotated[Email, Field(alias="customerEmail")]
    payment_type: Annotated[Filled, Field(alias="paymentType")]
    reference: Filled | None = None
    incoming_amount: Annotated[Amount | None, Field(alias="incomingAmount")] = None
    outgoing_amount: Annotated[Amount | None, Field(alias="outgoingAmount")] = None
    rate_key: Annotated[Filled | None, Field(alias="rateKey")] = None
    service_username: Annotated[Filled | None, Field(alias="serviceUsername")] = None
    country: Filled | None = None
    account_number: Annotated[Filled | None, Field(alias="accountNumber")] = None
    account_name: Annotated[Filled | None, Field(alias="accountName")] = None
    bank: Filled | None = None
    bank_code: Annotated[Filled | None, Field(alias="bankCode")] = None

    @model_validator(mode="after")
    def _amounts_can_be_moved(self) -> Self:
        if self.incoming_amount is None and self.outgoing_amount is None:
            raise ValueError("A payment needs an incoming or an outgoing amount.")
        if self.incoming_amount is not None:
            check_quantity(self.incoming_amount, self.incoming_currency)
        if self.outgoing_amount is not None:
            check_quantity(self.outgoing_amount, self.outgoing_currency)
        return self

    @model_validator(mode="after")
    def _conditions_are_met(self) -> Self:
        missing = [name for name in CONDITIONAL.get(self.payment_type, ()) if getattr(self, name) is None]
        if missing:
            raise ValueError(f"A payment of type {self.payment_type} needs {', '.join(missing)}.")
        return self

    def wire(self, dialect: Dialect) -> dict[str, object]:
        """Return the body of POST /payment: amounts as numbers, what is not given left out."""
        body: dict[str, object] = self.model_dump(
            by_alias=True, exclude_none=True, exclude={"service_username"}
        )
        username = self.service_username
        return body if username is None else body | {dialect.service_username_member: username}


class Payment(Receipt):
    """A payment as the service keeps it. Nothing is decided on `state`: its values are not documented."""

    id: Annotated[Identity, Field(alias="_id")] = None
    reference: Remark = ""
    business_id: Annotated[Remark, Field(alias="businessId")] = ""
    state: Remark = ""
    payment_type: Annotated[Remark, Field(alias="paymentType")] = ""
    address: Remark = ""
    account: Remark = ""
    incoming_currency: Annotated[Remark, Field(alias="incomingCurrency")] = ""
    outgoing_currency: Annotated[Remark, Field(alias="outgoingCurrency")] = ""
    incoming_amount: Annotated[ToldAmount, Field(alias="incomingAmount")] = None
    outgoing_amount: Annotated[ToldAmount, Field(alias="outgoingAmount")] = None
    confirmed_amount: Annotated[ToldAmount, Field(alias="confirmedAmount")] = None
    unconfirmed_amount: Annotated[ToldAmount, Field(alias="unconfirmedAmount")] = None
    rate: ToldAmount = None
    customer_email: Annotated[Remark, Field(alias="customerEmail")] = ""
    sender_username: Annotated[Remark, Field(alias="senderUsername")] = ""
    thread_timestamp: Annotated[Remark, Field(alias="threadTS")] = ""
    expires_at: Annotated[Moment, Field(alias="expTime")] = None
    created_at: Annotated[Moment, Field(alias="createdAt")] = None
    updated_at: Annotated[Moment, Field(alias="updatedAt")] = None
