"""Payments: crypto comes in, the payout goes to a bank account or to a user of the service."""

from payments_gateway._answers import Reply
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.schemas.payments import Payment, PaymentRequest


class Payments:
    """The operation under /payment."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def create(self, request: PaymentRequest) -> Payment:
        """Create an off-ramp payment (POST /payment). Amounts leave as numbers; takes no token.

        At least one of the two amounts; `service_username` for type `profile`; country, account number and name,
        bank and bank code for type `bank`. What comes back tells the address to pay to, and until when.

        Not repeatable: whether the service refuses a second payment with the same `reference` is not documented, but
        by it the first one can be found. Raises RejectedError when the service refused, NotSentError when nothing
        left this machine, OutcomeUnknownError otherwise. Specification: Endpoints, POST /payment; Payment.
        """
        return self._transport.send_once("POST", "/payment", request.wire(self._dialect), into=_payment)


def _payment(reply: Reply) -> Payment:
    return Payment.model_validate(reply.data | {"raw": reply.data})
