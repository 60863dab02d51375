"""What the merchant orders, and what arrives: each one movement, or two, with where it goes to.

An order takes amount and fee at once. Withdrawals and wallet transfers are `processing` until they settle; transfers
between users and conversions are `fullfiled` at once, except transfers whose receiver has another fate (`fate.py`).
"""

from dataclasses import dataclass

from django.db.transaction import atomic

from payments_gateway.sandbox import clock, otp
from payments_gateway.sandbox.books import fate, rates
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
from payments_gateway.sandbox.books.names import holder_of
from payments_gateway.sandbox.books.networks import CRYPTO, NETWORKS
from payments_gateway.sandbox.models import Status, Transaction, WalletTransfer, Withdrawal
from payments_gateway.sandbox.models import Transfer as TransferOrder
from payments_gateway.sandbox.wire.credentials import API_USER
from payments_gateway.sandbox.wire.refusals import refused_member

_LARGEST_BALANCE = 10**17  # minor units; the columns count to ninety times as many


@dataclass(frozen=True, slots=True)
class BankAccount:
    """The bank account that money goes to."""

    account_number: str
    account_name: str
    bank: str
    bank_code: str

    def check_exists(self) -> None:
        """RefusedError 400 when the bank has no such account."""
        if holder_of(self.account_number, self.bank_code) is None:
            raise refused_member("accountNumber", f"does not exist at {self.bank}")


@dataclass(frozen=True, slots=True)
class Wallet:
    """The address that crypto goes to; its form was checked before."""

    network: str
    address: str
    wallet_type: str = ""
    memo: str = ""


@atomic(durable=True)
def withdraw(to: BankAccount, *, currency: str, amount: int, token: otp.Token | None) -> Transaction:
    """Take amount and fee, in minor units, and leave the withdrawal processing.

    Raises RefusedError: 400 when the account does not exist or the token is refused, 422 when the balance does not
    suffice. The token is looked at last: a request refused for another reason does not use it up.
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
        will_fail=fate.will_fail(to.account_number),
    )
    otp.use(token, at=clock.wall())
    return record


@atomic(durable=True)
def transfer(receiver: str, *, currency: str, amount: int, memo: str, token: otp.Token | None) -> Transaction:
    """Give to another user of the service; without a fee.

    Raises RefusedError: 400 when there is no such user, it is the merchant itself or the token is refused, 422 when
    the balance does not suffice.
    """
    if receiver == API_USER:
        raise refused_member("receiverUsername", "is your own username")
    if not fate.is_user(receiver):
        raise refused_member("receiverUsername", "is not a user of the service")
    fails = fate.will_fail(receiver)
    status = Status.PROCESSING if fails or fate.takes_a_day(receiver) else Status.FULFILLED
    record = post(Movement(TRANSFER, currency, amount, API_USER, receiver), clock.now(), status)
    TransferOrder.objects.create(transaction=record, receiver=receiver, memo=memo, will_fail=fails)
    otp.use(token, at=clock.wall())
    return record


@atomic(durable=True)
def send(to: Wallet, *, amount: int) -> WalletTransfer:
    """Send crypto to an address and leave the transfer processing; the network's fee comes on top.

    Raises RefusedError 422 when the balance does not suffice.
    """
    movement = Movement(SENT, CRYPTO, amount, API_USER, to.address, fee=NETWORKS[to.network].fee)
    return WalletTransfer.objects.create(
        transaction=post(movement, clock.now(), Status.PROCESSING),
        network=to.network,
        address=to.address,
        wallet_type=to.wallet_type,
        memo=to.memo,
        will_fail=fate.will_fail(to.address),
    )


@atomic(durable=True)
def convert(from_currency: str, to_currency: str, *, amount: int) -> tuple[Transaction, Transaction]:
    """Give one currency for another at the present rate: the record of what was given, and of what was received.

    Raises RefusedError: 400 for one and the same currency or an amount that would become nothing, 422 when the
    balance does not suffice.
    """
    if from_currency == to_currency:
        raise refused_member("toCurrency", "must be another currency than fromCurrency")
    at = clock.now()
    rate = rates.quote(from_currency, to_currency, at)
    gained = rates.received(amount, from_currency, to_currency, rate)
    if gained == 0:
        raise refused_member("amount", f"is too little: it would become nothing in {to_currency}")
    given = post(Movement(CONVERSION, from_currency, amount, API_USER, API_USER), at)
    back = Movement(CONVERSION, to_currency, gained, API_USER, API_USER, True, 0, from_currency, amount)
    return given, post(back, at)


@atomic(durable=True)
def deposit(currency: str, amount: int, sender: str) -> Transaction:
    """Money or crypto arrives from outside, in minor units: credited at once.

    Raises RefusedError 400 for an amount that is not positive, or beyond what the books can hold.
    """
    if amount <= 0:
        raise refused_member("amount", "must be more than zero")
    if merchant_accounts()[currency].balance + amount > _LARGEST_BALANCE:
        raise refused_member("amount", "is more than the books can hold")
    return post(Movement(DEPOSIT, currency, amount, sender, API_USER, incoming=True), clock.now())
