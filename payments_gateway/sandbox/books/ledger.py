"""The books: every movement is one transaction record and entries that add up to zero.

* The balance of an account is the sum of its entries; the account keeps running totals, changed in the same commit.
* `prevBalance` of a record is the merchant's balance in that currency just before it, so the records of a currency
  form one chain: each record's previous balance plus its effect is the previous balance of the next.
* `totalRecieved` and `totalSent` are the sums of what was added and taken; their difference is the balance.
* A withdrawal takes amount and fee when it is accepted, as `processing`, and becomes `fullfiled` or `failed`. A failed
  one keeps its record and its entries; the money comes back, fee included, as a record of its own of type `deposit`
  ("Reversal of …"). So every record counts, whatever its status, and nothing is ever rewritten.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum
from django.db.transaction import atomic

from payments_gateway.sandbox import clock, otp
from payments_gateway.sandbox.books.movements import (
    FEE_OF_WITHDRAWAL,
    MERCHANT,
    WITHDRAWAL,
    Movement,
    reversal_of,
)
from payments_gateway.sandbox.books.names import holder_of
from payments_gateway.sandbox.models import Account, Entry, Simulation, Status, Transaction, Withdrawal
from payments_gateway.sandbox.wire.credentials import API_USER
from payments_gateway.sandbox.wire.errors import RefusedError

_FAILING_SUFFIX = "99"


@dataclass(frozen=True, slots=True)
class Destination:
    """The bank account that a withdrawal goes to."""

    account_number: str
    account_name: str
    bank: str
    bank_code: str


@atomic(durable=True)
def withdraw(to: Destination, *, currency: str, amount: int, token: otp.Token | None) -> Transaction:
    """Take amount and fee, in minor units, and leave the withdrawal processing.

    Raises RefusedError: 400 when the account does not exist or the token is refused, 422 when the balance does not
    suffice. The token is looked at last: a request refused for another reason does not use it up.
    """
    if holder_of(to.account_number, to.bank_code) is None:
        phrase = f"does not exist at {to.bank}"
        raise RefusedError(400, f"accountNumber {phrase}", [("accountNumber", phrase)])
    at = clock.now()
    fee = FEE_OF_WITHDRAWAL[currency]
    record = post(
        Movement(WITHDRAWAL, currency, amount, API_USER, to.account_name, fee=fee), at, Status.PROCESSING
    )
    Withdrawal.objects.create(
        transaction=record,
        account_number=to.account_number,
        account_name=to.account_name,
        bank=to.bank,
        bank_code=to.bank_code,
        will_fail=_will_fail(to.account_number),
    )
    otp.use(token, at=clock.wall())
    return record


def _will_fail(account_number: str) -> bool:
    simulation = Simulation.objects.get()
    if simulation.fail_next:
        simulation.fail_next -= 1
        simulation.save(update_fields=["fail_next"])
        return True
    return account_number.endswith(_FAILING_SUFFIX)


def post(movement: Movement, at: datetime, status: str = Status.FULFILLED) -> Transaction:
    """Enter one movement, inside the caller's transaction. RefusedError 422 when the balance does not suffice."""
    accounts = {account.owner: account for account in Account.objects.filter(currency=movement.currency)}
    if accounts[MERCHANT].balance + movement.effect < 0:
        raise RefusedError(
            422, f"insufficient funds: the {movement.currency} balance does not cover amount and fee"
        )
    transaction_id = f"{int(at.timestamp()):08x}{secrets.token_hex(8)}"
    values = record_values(movement, at, transaction_id, accounts[MERCHANT].balance, status)
    record = Transaction.objects.create(**values)
    for owner, amount in movement.entries():
        Entry.objects.create(transaction=record, account=accounts[owner], amount=amount)
        count(accounts[owner], amount)
        accounts[owner].save(update_fields=["balance", "received", "sent", "transactions"])
    return record


def record_values(
    movement: Movement, at: datetime, transaction_id: str, previous_balance: int, status: str
) -> dict[str, Any]:
    """The columns of the record of a movement."""
    from_currency, from_amount = movement.given
    return {
        "transaction_id": transaction_id,
        "currency": movement.currency,
        "type": movement.type,
        "status": status,
        "amount": movement.amount,
        "fee": movement.fee,
        "previous_balance": previous_balance,
        "incoming": movement.incoming,
        "sender": movement.sender,
        "username": movement.username,
        "from_currency": from_currency,
        "from_amount": from_amount,
        "created_at": at,
        "updated_at": at,
    }


def count(account: Account, amount: int) -> None:
    """Add one entry to the running totals of its account."""
    account.balance += amount
    account.received += max(amount, 0)
    account.sent += max(-amount, 0)
    account.transactions += 1


def settle(record: Transaction, *, failed: bool) -> None:
    """End a processing withdrawal, inside the caller's transaction; a failed one gives the money back."""
    at = clock.now()
    record.status = Status.FAILED if failed else Status.FULFILLED
    record.updated_at = at
    record.save(update_fields=["status", "updated_at"])
    if failed:
        post(reversal_of(record.transaction_id, record.currency, record.amount + record.fee, to=API_USER), at)


def differences() -> list[str]:
    """Every disagreement between entries, totals and records, in words; empty when the books agree."""
    found = [breach for currency in merchant_accounts() for breach in _breaks_of_chain(currency)]
    sums = {
        row["account"]: row["total"] for row in Entry.objects.values("account").annotate(total=Sum("amount"))
    }
    accounts = Account.objects.all()
    found += [
        f"{each}: not the sum of its entries" for each in accounts if each.balance != sums.get(each.id, 0)
    ]
    unbalanced = Entry.objects.values("transaction").annotate(total=Sum("amount")).exclude(total=0).count()
    return [*found, f"{unbalanced} transactions do not add up to zero"] if unbalanced else found


def _breaks_of_chain(currency: str) -> list[str]:
    balance = 0
    fields = ("transaction_id", "previous_balance", "incoming", "amount", "fee")
    rows = Transaction.objects.filter(currency=currency).order_by("id").values_list(*fields)
    for transaction_id, previous_balance, incoming, amount, fee in rows.iterator():
        if previous_balance != balance:
            return [f"{transaction_id}: prevBalance does not follow from the record before"]
        balance += (amount if incoming else -amount) - fee
    agrees = balance == merchant_accounts()[currency].balance
    return [] if agrees else [f"{currency}: the records do not lead to the balance"]


def merchant_accounts() -> Mapping[str, Account]:
    """The merchant's account of each currency."""
    # In SQL because clients poll balances: building this query costs the ORM more than everything else in the answer.
    accounts = Account.objects.raw("SELECT * FROM sandbox_account WHERE owner = %s ORDER BY id", [MERCHANT])
    return {account.currency: account for account in accounts}
