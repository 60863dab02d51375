"""Off-ramp payments: a customer pays crypto, the payout goes to a bank account or to a user of the provider."""

from functools import partial

from payments_gateway.money import UnreadableError
from payments_gateway.responses import ParsedResponse
from payments_gateway.schemas.payments import Payment, PaymentRequest
from payments_gateway.transport import Resource


class Payments(Resource):
    """The operation under /payment."""

    def create(self, request: PaymentRequest) -> Payment:
        """Create an off-ramp payment (POST /payment). Amounts are sent as numbers; takes no one-time code.

        Requires at least one of the two amounts; `service_username` for type `profile`; country, account
        number and name, bank and bank code for type `bank`. The result holds the address to pay to, and when
        it expires.

        Not repeatable: whether the provider rejects a second payment with the same `reference` is not
        documented, but the first one can be found by it. Raises RejectedError when the provider rejected the
        request, NotSentError when nothing was sent, OutcomeUnknownError otherwise; also for a success that
        names no payment at all (no id, reference or address), or one with another reference than the one
        sent. Specification: Endpoints, POST /payment; Payment.
        """
        into = partial(_parse_payment, request.reference)
        return self._transport.send_once("POST", "/payment", request.wire(self._profile), into=into)


def _parse_payment(reference: str | None, response: ParsedResponse) -> Payment:
    """Read the created payment and check its reference; without one in the request the provider assigns it."""
    payment = Payment.model_validate(response.data | {"raw": response.data})
    named = payment.reference.strip()
    if not (payment.id or named or payment.address.strip()):
        raise UnreadableError("it names no payment: no id, no reference, no address")
    if reference is not None and named not in {"", reference}:
        raise UnreadableError("it tells of a payment of another reference than the one sent")
    return payment
