"""State of the simulation and changes to it that the control API and the console share."""

from payments_gateway.sandbox import clock, lifecycle, otp
from payments_gateway.sandbox.amounts import amount_text, minor_units
from payments_gateway.sandbox.books import ledger, payments, settlement
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.registry import FAULTS
from payments_gateway.sandbox.models import Payment, Simulation
from payments_gateway.sandbox.webhooks import delivery


def current_codes() -> dict[str, object]:
    """The codes of this moment, in real time, in which authenticator apps live."""
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
    """The options in force."""
    return lifecycle.options_of(Simulation.objects.get())


def balances() -> dict[str, str]:
    """What the merchant has, by currency."""
    return {
        currency: amount_text(account.balance, currency)
        for currency, account in ledger.merchant_accounts().items()
    }


def missing_units(payment: Payment) -> int:
    """What the customer has still to send, in minor units; below zero when it was too much."""
    return payment.incoming_amount - payment.confirmed_amount - payment.unconfirmed_amount


def missing_amount(payment: Payment) -> str:
    """What the customer has still to send, as text."""
    return amount_text(max(missing_units(payment), 0), payment.incoming_currency)


def reset_to_seed() -> int:
    """Forget everything since the seed, faults included; what they still hold is never executed. How many are left."""
    FAULTS.clear(abandon=True)
    return lifecycle.reset()


def advance_clock(seconds: float) -> None:
    """Put the service's clock forward, settle what is due by then, and let webhooks go out that are."""
    lifecycle.advance_clock(seconds)
    settlement.settle_due()
    delivery.wake_courier()


def pay_as_customer(reference: str, amount: str | None) -> Payment:
    """A customer sends this amount to the address of a payment, or what is still missing.

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
    """Payments that have not ended, newest first."""
    return list(Payment.objects.filter(state__in=OPEN_PAYMENT_STATES).order_by("-id")[:LATEST_SHOWN])
