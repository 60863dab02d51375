"""What can be done to the simulation from outside the service, by the control API and by the console alike."""

from payments_gateway.sandbox import clock, lifecycle
from payments_gateway.sandbox.books import payments, settlement
from payments_gateway.sandbox.control.present import missing_units
from payments_gateway.sandbox.faults.plan import PLAN
from payments_gateway.sandbox.models import Payment
from payments_gateway.sandbox.webhooks import doorbell
from payments_gateway.sandbox.wire.amounts import minor_units
from payments_gateway.sandbox.wire.errors import RefusedError


def back_to_the_seed() -> int:
    """Forget everything since the seed, faults included; what they still hold is never executed. How many are left."""
    PLAN.clear(abandon=True)
    return lifecycle.reset()


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
    units = missing_units(payment) if amount is None else minor_units(amount, payment.incoming_currency)
    return payments.pay_in(payment.payment_id, units)
