"""Off-ramp payments: a customer sends crypto to an address, and a bank account or a user gets the payout.

The specification names no states (States and transitions); these are the sandbox's own:

    pending      waiting for the customer
    unconfirmed  crypto has arrived, but not all of it, or without its confirmations
    processing   everything is confirmed; the payout is being made
    completed    paid out
    failed       the payout was rejected; the customer gets the crypto back
    underpaid    the payment expired with too little at the address; the customer gets it back
    expired      the payment expired and nothing had arrived

The customer's crypto and the payout never belong to the merchant, so its balances do not change and there is
no transaction record: on completion the books move the crypto from the chain to the exchange, and the payout
from the exchange to the banks or users outside. The one exception is a payout to the merchant's own username,
which arrives as a `deposit`. Crypto that is too much, too late or for a failed payment is returned and is not
posted.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.transaction import atomic

from payments_gateway.sandbox import API_USER, BANKS, CHAIN, EXCHANGE, USERS, clock
from payments_gateway.sandbox.books import ledger, orders
from payments_gateway.sandbox.books.counterparties import address_on
from payments_gateway.sandbox.books.movements import DEPOSIT, Movement
from payments_gateway.sandbox.books.orders import DestinationAccount
from payments_gateway.sandbox.books.rates import PaymentTerms, quote_payment
from payments_gateway.sandbox.errors import RefusedError, refused_member
from payments_gateway.sandbox.models import Arrival, Payment, SandboxState
from payments_gateway.sandbox.settings import PROFILE

LIFETIME = timedelta(minutes=30)
CONFIRMATION_TIME = timedelta(seconds=60)
USER_PAYOUT, BANK_PAYOUT = "profile", "bank"
_NETWORK = "TRC20"
_LARGEST_ARRIVAL = 10**15  # minor units
_State = Payment.State


@dataclass(frozen=True, slots=True)
class Payout:
    """The destination of a payout: a bank account in a country, or a user of the provider."""

    account: DestinationAccount | None = None
    country: str = ""
    username: str = ""

    @property
    def destination(self) -> str:
        """The account number or the username."""
        return self.account.account_number if self.account else self.username

    def check_exists(self) -> None:
        """RefusedError 400 if the account or user does not exist."""
        if self.account is not None:
            self.account.check_exists()
        elif not orders.is_user(self.username):
            raise refused_member(PROFILE.service_username_member, "is not a user of the provider")

    def columns(self) -> dict[str, str]:
        """The columns of the payment that store it."""
        account = self.account or DestinationAccount("", "", "", "")
        return {
            "payment_type": BANK_PAYOUT if self.account else USER_PAYOUT,
            "service_username": self.username,
            "country": self.country,
            "account_number": account.account_number,
            "account_name": account.account_name,
            "bank": account.bank,
            "bank_code": account.bank_code,
        }


@atomic(durable=True)
def create(terms: PaymentTerms, to: Payout, *, reference: str, customer_email: str) -> Payment:
    """Accept a payment and assign an address; an empty `reference` is replaced by a generated one.

    Raises RefusedError: 400 when the terms or the destination are invalid, 409 when the reference was used
    before.
    """
    to.check_exists()
    at, payment_id = clock.now(), secrets.token_hex(12)
    quote = quote_payment(terms, at)
    if reference and Payment.objects.filter(reference=reference).exists():
        raise refused_member("reference", "has been used by another payment", 409)
    payment = Payment.objects.create(
        payment_id=payment_id,
        reference=reference or f"PAY-{payment_id}",
        incoming_currency=terms.incoming_currency,
        incoming_amount=quote.incoming,
        outgoing_currency=terms.outgoing_currency,
        outgoing_amount=quote.outgoing,
        rate=f"{quote.rate:f}",
        address=address_on(_NETWORK, payment_id),
        customer_email=customer_email,
        will_fail=orders.will_fail(to.destination),
        expires_at=at + LIFETIME,
        due_at=at,
        created_at=at,
        updated_at=at,
        **to.columns(),
    )
    _schedule_customer_payment(payment)
    ledger.announce_payment_created(payment)
    return payment


@atomic(durable=True)
def pay_in(payment_id: str, amount: int) -> Payment:
    """Simulate that the customer sends this amount, in minor units, to the address of the payment now.

    Raises RefusedError: 404 for an unknown payment, 400 for an invalid amount, 409 when the payment awaits
    nothing.
    """
    payment = Payment.objects.filter(payment_id=payment_id).first()
    if payment is None:
        raise RefusedError(404, "there is no such payment")
    at = clock.now()
    _apply_arrivals(payment, at)
    if payment.state not in {_State.PENDING, _State.UNCONFIRMED} or at >= payment.expires_at:
        raise RefusedError(409, f"the payment is {payment.state} and awaits nothing any more")
    if not 0 < amount <= _LARGEST_ARRIVAL:
        raise refused_member("amount", "must be more than zero, and less than the books can hold")
    Arrival.objects.create(payment=payment, amount=amount, arrived_at=at)
    _apply_arrivals(payment, at)
    return payment


def advance_payments(settle_after: timedelta | None) -> int:
    """Advance payments to their state at the current time; inside the caller's transaction.

    Return how many reached a final state.
    """
    at = clock.now()
    return sum(
        _advance_payment(payment, at, settle_after) for payment in Payment.objects.filter(due_at__lte=at)
    )


def pay_out_now(*, failed: bool | None) -> int:
    """Finish the payments that are fully paid; inside the caller's transaction. Return how many."""
    at, ended = clock.now(), 0
    for payment in Payment.objects.filter(due_at__isnull=False).order_by("id"):
        _apply_arrivals(payment, at)
        received_amount = payment.confirmed_amount + payment.unconfirmed_amount
        if payment.due_at is not None and received_amount >= payment.incoming_amount:
            payment.confirmed_amount, payment.unconfirmed_amount = received_amount, 0
            _pay_out(payment, at, failed=payment.will_fail if failed is None else failed)
            ended += 1
    return ended


def _schedule_customer_payment(payment: Payment) -> None:
    """With the option `customer_pays_after`, schedule the full payment by the customer."""
    seconds = SandboxState.objects.get().customer_pays_after
    if seconds is not None:
        arrives_at = payment.created_at + timedelta(seconds=seconds)
        Arrival.objects.create(payment=payment, amount=payment.incoming_amount, arrived_at=arrives_at)


def _advance_payment(payment: Payment, at: datetime, settle_after: timedelta | None) -> bool:
    _apply_arrivals(payment, at)
    if payment.state == _State.PROCESSING and payment.due_at and settle_after is not None:
        slow = orders.settles_slowly(payment.destination)
        if payment.due_at + (max(settle_after, orders.SLOW_SETTLEMENT) if slow else settle_after) <= at:
            _pay_out(payment, at, failed=payment.will_fail)
    return payment.due_at is None


def _apply_arrivals(payment: Payment, at: datetime) -> None:
    """Add what has arrived and been confirmed by now, and update the state."""
    if payment.state not in {_State.PENDING, _State.UNCONFIRMED}:
        return
    in_time = Arrival.objects.filter(payment=payment, arrived_at__lt=payment.expires_at)
    arrivals = list(in_time.order_by("arrived_at", "id"))
    received = [each for each in arrivals if each.arrived_at <= at]
    confirmed = sum(each.amount for each in received if each.arrived_at + CONFIRMATION_TIME <= at)
    before = payment.state, payment.confirmed_amount, payment.unconfirmed_amount
    payment.confirmed_amount = confirmed
    payment.unconfirmed_amount = sum(each.amount for each in received) - confirmed
    payment.state = _state(payment, at)
    payment.due_at = _next_change(payment, arrivals, at)
    _save(payment, at, changed=before != (payment.state, confirmed, payment.unconfirmed_amount))


def _state(payment: Payment, at: datetime) -> Payment.State:
    received_amount = payment.confirmed_amount + payment.unconfirmed_amount
    if payment.confirmed_amount >= payment.incoming_amount:
        return _State.PROCESSING
    if at >= payment.expires_at and received_amount < payment.incoming_amount:
        return _State.UNDERPAID if received_amount else _State.EXPIRED
    return _State.UNCONFIRMED if received_amount else _State.PENDING


def _next_change(payment: Payment, arrivals: list[Arrival], at: datetime) -> datetime | None:
    """The next time at which the state changes; in `processing`, the time of the last confirmation."""
    if payment.state in {_State.UNDERPAID, _State.EXPIRED}:
        return None
    if payment.state == _State.PROCESSING:
        return _confirmed_since(payment, arrivals)
    moments = [payment.expires_at]
    for each in arrivals:
        moments += [each.arrived_at, each.arrived_at + CONFIRMATION_TIME]
    return min(moment for moment in moments if moment > at)


def _confirmed_since(payment: Payment, arrivals: list[Arrival]) -> datetime:
    missing = payment.incoming_amount
    for each in arrivals:
        missing -= each.amount
        if missing <= 0:
            return each.arrived_at + CONFIRMATION_TIME
    return payment.expires_at


def _pay_out(payment: Payment, at: datetime, *, failed: bool) -> None:
    payment.state = _State.FAILED if failed else _State.COMPLETED
    payment.due_at = None
    if not failed:
        _post_entries(payment, at)
    _save(payment, at, changed=True)


def _post_entries(payment: Payment, at: datetime) -> None:
    is_to_merchant = payment.service_username == API_USER
    incoming, outgoing = payment.incoming_currency, payment.outgoing_currency
    outside = USERS if payment.payment_type == USER_PAYOUT and not is_to_merchant else BANKS
    lines = {
        (CHAIN, incoming): -payment.incoming_amount,
        (EXCHANGE, incoming): payment.incoming_amount,
        (EXCHANGE, outgoing): -payment.outgoing_amount,
        (outside, outgoing): payment.outgoing_amount,
    }
    ledger.post_payment(payment, lines)
    if is_to_merchant:
        payers = payment.customer_email[:120], API_USER
        given = incoming, payment.incoming_amount
        ledger.post(Movement(DEPOSIT, outgoing, payment.outgoing_amount, *payers, True, 0, *given), at)


def _save(payment: Payment, at: datetime, *, changed: bool) -> None:
    if changed:
        payment.updated_at = at
    payment.save()
    if changed:
        ledger.announce_payment_changed(payment)
