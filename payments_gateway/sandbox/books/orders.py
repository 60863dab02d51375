"""Orders of the merchant and incoming deposits: each is one movement, or two, with its destination.

Amount and fee of an order are debited at once. Withdrawals and wallet transfers are `processing` until they
settle; conversions are `fullfiled` at once, and transfers unless they will fail or are slow. Destinations ending
in 99 fail, those ending in 88 take an hour; the option `fail_next` makes the next orders fail.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db.transaction import atomic

from payments_gateway.sandbox import API_USER, clock, otp
from payments_gateway.sandbox.books import rates
from payments_gateway.sandbox.books.counterparties import NETWORKS, account_holder
from payments_gateway.sandbox.books.ledger import merchant_accounts, post
from payments_gateway.sandbox.books.movements import (
    CONVERSION,
    DEPOSIT,
    FEE_OF_WITHDRAWAL,
    SENT,
    TRANSFER,
    WITHDRAWAL,
    Movement,
)
from payments_gateway.sandbox.errors import refused_member
from payments_gateway.sandbox.models import SandboxState, Status, Transaction, WalletTransfer, Withdrawal
from payments_gateway.sandbox.models import Transfer as TransferOrder

SLOW_SETTLEMENT = timedelta(hours=1)
_FAILING_SUFFIX = "99"
_SLOW_SUFFIX = "88"
_UNKNOWN_USER_PREFIX = "nobody"


def will_fail(destination: str) -> bool:
    """Whether an order to this destination fails at settlement.

    Call it inside the caller's transaction, once per order: it counts `fail_next` down.
    """
    state = SandboxState.objects.get()
    if state.fail_next:
        state.fail_next -= 1
        state.save(update_fields=["fail_next"])
        return True
    return fails_at_settlement(destination)


def fails_at_settlement(destination: str) -> bool:
    """Whether every order to this destination fails at settlement."""
    return destination.endswith(_FAILING_SUFFIX)


def settles_slowly(destination: str) -> bool:
    """Whether orders to this destination stay in `processing` for an hour, whatever `settle_after` is."""
    return destination.endswith(_SLOW_SUFFIX)


def is_user(username: str) -> bool:
    """Whether the provider has a user of this name."""
    return not username.startswith(_UNKNOWN_USER_PREFIX)


_LARGEST_BALANCE = 10**17  # minor units; the columns count to ninety times as many


@dataclass(frozen=True, slots=True)
class DestinationAccount:
    """The bank account that receives a withdrawal."""

    account_number: str
    account_name: str
    bank: str
    bank_code: str

    def check_exists(self) -> None:
        """RefusedError 400 if the bank has no such account."""
        if account_holder(self.account_number, self.bank_code) is None:
            raise refused_member("accountNumber", f"does not exist at {self.bank}")


@dataclass(frozen=True, slots=True)
class DestinationWallet:
    """The address that receives crypto; its form was checked before."""

    network: str
    address: str
    wallet_type: str = ""
    memo: str = ""


@atomic(durable=True)
def withdraw(
    to: DestinationAccount, *, currency: str, amount: int, code: otp.OneTimeCode | None
) -> Transaction:
    """Debit amount and fee, in minor units; the withdrawal is `processing`.

    Raises RefusedError: 400 when the account does not exist or the one-time code is rejected, 422 when the
    balance does not suffice. The code is checked last: a request rejected for another reason does not use it
    up.
    """
    to.check_exists()
    fee = FEE_OF_WITHDRAWAL[currency]
    movement = Movement(WITHDRAWAL, currency, amount, API_USER, to.account_name, fee=fee)
    record = post(movement, clock.now(), Status.PROCESSING)
    Withdrawal.objects.create(
        transaction=record,
        account_number=to.account_number,
        account_name=to.account_name,
        bank=to.bank,
        bank_code=to.bank_code,
        will_fail=will_fail(to.account_number),
    )
    otp.use_code(code, at=clock.real_now())
    return record


@atomic(durable=True)
def transfer(
    receiver: str, *, currency: str, amount: int, memo: str, code: otp.OneTimeCode | None
) -> Transaction:
    """Transfer to another user of the provider, without a fee.

    Raises RefusedError: 400 when there is no such user, it is the merchant itself or the one-time code is
    rejected, 422 when the balance does not suffice.
    """
    if receiver == API_USER:
        raise refused_member("receiverUsername", "is your own username")
    if not is_user(receiver):
        raise refused_member("receiverUsername", "is not a user of the provider")
    fails = will_fail(receiver)
    status = Status.PROCESSING if fails or settles_slowly(receiver) else Status.FULFILLED
    record = post(Movement(TRANSFER, currency, amount, API_USER, receiver), clock.now(), status)
    TransferOrder.objects.create(transaction=record, receiver=receiver, memo=memo, will_fail=fails)
    otp.use_code(code, at=clock.real_now())
    return record


@atomic(durable=True)
def send(to: DestinationWallet, *, currency: str, amount: int) -> WalletTransfer:
    """Send crypto to an address; the transfer is `processing`. The network fee is added to the amount.

    Raises RefusedError 422 when the balance does not suffice.
    """
    movement = Movement(SENT, currency, amount, API_USER, to.address, fee=NETWORKS[to.network].fee)
    return WalletTransfer.objects.create(
        transaction=post(movement, clock.now(), Status.PROCESSING),
        network=to.network,
        address=to.address,
        wallet_type=to.wallet_type,
        memo=to.memo,
        will_fail=will_fail(to.address),
    )


@atomic(durable=True)
def convert(from_currency: str, to_currency: str, *, amount: int) -> tuple[Transaction, Transaction]:
    """Convert at the current rate. Return the record of what was sold, and of what was received.

    Raises RefusedError: 400 for the same currency twice or an amount that rounds to zero, 422 when the
    balance does not suffice.
    """
    if from_currency == to_currency:
        raise refused_member("toCurrency", "must be another currency than fromCurrency")
    at = clock.now()
    rate = rates.quote(from_currency, to_currency, at)
    gained = rates.amount_received(amount, from_currency, to_currency, rate)
    if gained == 0:
        raise refused_member("amount", f"is too little: it would become nothing in {to_currency}")
    given = post(Movement(CONVERSION, from_currency, amount, API_USER, API_USER), at)
    back = Movement(CONVERSION, to_currency, gained, API_USER, API_USER, True, 0, from_currency, amount)
    return given, post(back, at)


@atomic(durable=True)
def deposit(currency: str, amount: int, sender: str) -> Transaction:
    """Credit money or crypto from outside, in minor units, at once.

    Raises RefusedError 400 for an amount that is not positive or exceeds the limit of the books.
    """
    if amount <= 0:
        raise refused_member("amount", "must be more than zero")
    if merchant_accounts()[currency].balance + amount > _LARGEST_BALANCE:
        raise refused_member("amount", "is more than the books can hold")
    return post(Movement(DEPOSIT, currency, amount, sender, API_USER, incoming=True), clock.now())
