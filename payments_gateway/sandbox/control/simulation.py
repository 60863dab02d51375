"""Reads and changes of the simulation that the control API and the console share."""

from payments_gateway.sandbox import clock, lifecycle, otp
from payments_gateway.sandbox.amounts import amount_text, minor_units
from payments_gateway.sandbox.books import ledger, payments, settlement
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.registry import FAULTS
from payments_gateway.sandbox.models import Payment, Simulation
from payments_gateway.sandbox.webhooks import delivery


def current_codes() -> dict[str, object]:
    """The current one-time codes, in real time, as authenticator apps use it."""
    simulation, at = Simulation.objects.get(), clock.real_now()
    step = otp.step_of(at)
    return {
        "totp": otp.totp(simulation.totp_secret, step),
        "secondsLeft": (step + 1) * otp.STEP_SECONDS - int(at.timestamp()),
        "used": step <= simulation.last_totp_step,
        "otp": simulation.one_time_code,
        "secret": simulation.totp_secret,
    }


def current_options() -> dict[str, object]:
    return lifecycle.options_of(Simulation.objects.get())


def balances() -> dict[str, str]:
    """The merchant's balances by currency."""
    return {
        currency: amount_text(account.balance, currency)
        for currency, account in ledger.merchant_accounts().items()
    }


def missing_units(payment: Payment) -> int:
    """The minor units that the customer still has to send; negative after an overpayment."""
    return payment.incoming_amount - payment.confirmed_amount - payment.unconfirmed_amount


def missing_amount(payment: Payment) -> str:
    """The amount that the customer still has to send, as text."""
    return amount_text(max(missing_units(payment), 0), payment.incoming_currency)


def reset_to_seed() -> int:
    """Delete everything since the seed, faults included, and return the number of records left.

    Requests that a fault holds are never executed.
    """
    FAULTS.clear(abandon=True)
    return lifecycle.reset()


def advance_clock(seconds: float) -> None:
    """Advance the provider's clock, settle what is due by then, and send the webhooks that are due."""
    lifecycle.advance_clock(seconds)
    settlement.settle_due()
    delivery.wake_courier()


def pay_as_customer(reference: str, amount: str | None) -> Payment:
    """Send this amount as the customer to the address of a payment, or the missing amount.

    Raises RefusedError: 404 when there is no such payment, 400 or 409 as `books.payments.pay_in`.
    """
    payment = Payment.objects.filter(reference=reference).first()
    if payment is None:
        raise RefusedError(404, "there is no payment of this reference")
    units = missing_units(payment) if amount is None else minor_units(amount, payment.incoming_currency)
    return payments.pay_in(payment.payment_id, units)


OPEN_PAYMENT_STATES = (Payment.State.PENDING, Payment.State.UNCONFIRMED, Payment.State.PROCESSING)


LATEST_SHOWN = 10


def open_payments() -> list[Payment]:
    """Payments that are not in a final state, newest first."""
    return list(Payment.objects.filter(state__in=OPEN_PAYMENT_STATES).order_by("-id")[:LATEST_SHOWN])
