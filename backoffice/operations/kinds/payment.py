"""Payment: crypto of a customer comes in, the payout goes to a bank account or to a user (POST /payment)."""

from decimal import Decimal
from typing import Any

from pydantic import SecretStr

from backoffice.core.display import format_amount
from backoffice.operations.kinds.base import ChangeKind, Counterparty, Debit, Facts, Receipt, Section
from backoffice.operations.kinds.payment_form import BANK, PaymentForm, PaymentPayload
from backoffice.operations.permissions import PREPARE
from payments_gateway import Payment, PaymentRequest, PaymentsGateway


class PaymentKind(ChangeKind[PaymentPayload]):
    """An off-ramp payment. Nothing leaves a balance, and no token is asked for: what it makes is an address."""

    name = "payment"
    label = "Payment"
    plural = "Payments"
    letter = "P"
    verb = "Create payment"
    done = ("Created", "The service created the payment. What the customer pays in is shown below.")
    section = Section.MONEY
    permission = PREPARE
    payload_type = PaymentPayload
    form_type = PaymentForm

    def sentence(self, payload: PaymentPayload) -> str:
        holder = self.counterparty(payload)
        incoming = _amount(payload.incoming_currency, payload.incoming_amount)
        outgoing = _amount(payload.outgoing_currency, payload.outgoing_amount)
        return f"Take {incoming} in, pay {outgoing} out to {holder.name}, {holder.detail}"

    def at_stake(self, payload: PaymentPayload) -> Debit:
        """What is paid out, or what the customer pays in where only that is given. No balance of ours is debited."""
        return self.limited(payload)[0]

    def limited(self, payload: PaymentPayload) -> list[Debit]:
        """What is paid out and what the customer pays in: of the two, those that are given."""
        given = (
            (payload.outgoing_currency, payload.outgoing_amount),
            (payload.incoming_currency, payload.incoming_amount),
        )
        return [Debit(currency, amount) for currency, amount in given if amount is not None]

    def counterparty(self, payload: PaymentPayload) -> Counterparty:
        if payload.payment_type == BANK:
            return payload.account_holder
        name = payload.service_username
        return Counterparty(name, "user of the service", key=Counterparty.user_key(name))

    def facts(self, payload: PaymentPayload) -> Facts:
        open_amount = "What the service's rate makes of the other amount"
        given = {
            "Customer pays in": (payload.incoming_currency, payload.incoming_amount),
            "Paid out": (payload.outgoing_currency, payload.outgoing_amount),
        }
        amounts = [
            (label, _amount(*pair) if pair[1] is not None else f"{pair[0]} · {open_amount.lower()}")
            for label, pair in given.items()
        ]
        return [
            *amounts,
            *_payout_facts(payload),
            ("Customer", payload.customer_email),
            (
                "Rate",
                f"By the key {payload.rate_key}"
                if payload.rate_key
                else "The service's own, when it is sent",
            ),
            ("Our reference", payload.reference),
            ("Business", payload.business_id),
        ]

    def initial(self, payload: PaymentPayload) -> dict[str, Any]:
        return payload.model_dump(
            exclude={
                "repeat_reason",
                "reference",
                "business_id",
                "bank",
                "account_name",
                "saved_name",
                "rate_key",
            }
        )

    def cautions(self, payload: PaymentPayload) -> list[str]:
        return payload.account_cautions if payload.payment_type == BANK else []

    def send(self, gateway: PaymentsGateway, payload: PaymentPayload, token: SecretStr | None) -> Receipt:
        request = PaymentRequest(
            business_id=payload.business_id,
            reference=payload.reference,
            incoming_currency=payload.incoming_currency,
            incoming_amount=payload.incoming_amount,
            outgoing_currency=payload.outgoing_currency,
            outgoing_amount=payload.outgoing_amount,
            customer_email=payload.customer_email,
            payment_type=payload.payment_type,
            rate_key=payload.rate_key or None,
            service_username=payload.service_username or None,
            country=payload.country or None,
            account_number=payload.account_number or None,
            account_name=payload.account_name or None,
            bank=payload.bank or None,
            bank_code=payload.bank_code or None,
        )
        payment = gateway.payments.create(request)
        return Receipt(status=payment.state, is_final=True, result=kept(payment))

    def is_done(self, gateway: PaymentsGateway, payload: PaymentPayload) -> bool | None:
        """No read can tell: a lost answer took the payment's id with it, and the service has no list of payments.

        The address would be lost, too, so a guess would help nobody. People settle it by our reference.
        """
        return None

    def outcome_facts(self, payload: PaymentPayload, result: dict[str, str]) -> Facts:
        labels = {"id": "Payment", "reference": "Reference", "rate": "Rate"}
        return [(label, result[name]) for name, label in labels.items() if result.get(name)]


def kept(payment: Payment) -> dict[str, str]:
    """What is kept of a payment as the service tells it: plain texts by name, without what it does not tell."""
    texts = {
        "id": payment.id or "",
        "reference": payment.reference,
        "address": payment.address,
        "state": payment.state,
        "expires_at": payment.expires_at.isoformat() if payment.expires_at else "",
        "incoming_currency": payment.incoming_currency,
        "outgoing_currency": payment.outgoing_currency,
    }
    numbers = {
        "incoming_amount": payment.incoming_amount,
        "outgoing_amount": payment.outgoing_amount,
        "confirmed_amount": payment.confirmed_amount,
        "unconfirmed_amount": payment.unconfirmed_amount,
        "rate": payment.rate,
    }
    told = texts | {name: f"{number:f}" for name, number in numbers.items() if number is not None}
    return {name: text for name, text in told.items() if text}


def _payout_facts(payload: PaymentPayload) -> Facts:
    if payload.payment_type == BANK:
        return [*payload.account_facts, ("Country", payload.country)]
    return [("To", f"{payload.service_username}, user of the service")]


def _amount(currency: str, amount: Decimal | None) -> str:
    return currency if amount is None else f"{currency} {format_amount(amount, currency)}"
