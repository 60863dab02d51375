"""What is the case at this moment, as the control API and the console both tell it."""

from payments_gateway.sandbox import clock, lifecycle, otp
from payments_gateway.sandbox.books import ledger
from payments_gateway.sandbox.models import Payment, Simulation
from payments_gateway.sandbox.wire.amounts import amount_text


def present_codes() -> dict[str, object]:
    """The codes of this moment, in real time, in which authenticator apps live."""
    simulation, at = Simulation.objects.get(), clock.wall()
    step = otp.step_of(at)
    return {
        "totp": otp.totp(simulation.totp_secret, step),
        "secondsLeft": (step + 1) * otp.STEP_SECONDS - int(at.timestamp()),
        "used": step <= simulation.last_totp_step,
        "otp": simulation.one_time_code,
        "secret": simulation.totp_secret,
    }


def present_options() -> dict[str, object]:
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


def missing_of(payment: Payment) -> str:
    """What the customer has still to send, as text."""
    return amount_text(max(missing_units(payment), 0), payment.incoming_currency)
