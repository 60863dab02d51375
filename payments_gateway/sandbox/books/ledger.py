"""Post movements: each is one transaction record and entries that add up to zero.

* The balance of an account is the sum of its entries; the account keeps running totals, changed in the same commit.
* `prevBalance` of a record is the merchant's balance in that currency just before it: the records of a currency
  form one chain, each previous balance plus effect being the next previous balance.
* `totalRecieved` and `totalSent` are the sums of what was added and taken; their difference is the balance.
* An order takes amount and fee when it is accepted; what is `processing` becomes `fullfiled` or `failed`. A failed
  one keeps its record and its entries; the money is returned, fee included, by a record of its own of type `deposit`
  ("Reversal of …"). So every record counts, whatever its status, and no amount is ever changed.
* Every change is announced to webhooks in the transaction that makes it.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Sum

from payments_gateway.sandbox import API_USER, EXCHANGE, MERCHANT, clock
from payments_gateway.sandbox.books.movements import Movement, reversal_of
from payments_gateway.sandbox.books.records import payment_record, transaction_record
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.models import Account, Entry, Payment, Status, Transaction
from payments_gateway.sandbox.webhooks.outbox import announce


def announce_transaction(record: Transaction, **more: str) -> None:
    """Announce a new record or status; `more` are optional members, such as `failureReason`."""
    announce("Transaction updated", {**transaction_record(record), **more})


def announce_payment_created(payment: Payment) -> None:
    announce("Payment created", payment_record(payment))


def announce_payment_changed(payment: Payment) -> None:
    """Announce a new state or new amounts of a payment."""
    announce("Payment updated", payment_record(payment))


_FAILURE_REASON = "The destination rejected it."


def post(movement: Movement, at: datetime, status: str = Status.FULFILLED) -> Transaction:
    """Post one movement, inside the caller's transaction. RefusedError 422 if the balance does not suffice."""
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
        add_to_totals(accounts[owner], amount)
        accounts[owner].save(update_fields=["balance", "received", "sent", "transactions"])
    announce_transaction(record)
    return record


def post_payment(payment: Payment, lines: Mapping[tuple[str, str], int]) -> None:
    """Post what a payment moved between external parties: minor units by (owner, currency)."""
    for (owner, currency), amount in lines.items():
        account = Account.objects.get(owner=owner, currency=currency)
        Entry.objects.create(payment=payment, account=account, amount=amount)
        add_to_totals(account, amount)
        account.save(update_fields=["balance", "received", "sent", "transactions"])


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


def add_to_totals(account: Account, amount: int) -> None:
    """Add one entry to the totals of its account."""
    account.balance += amount
    account.received += max(amount, 0)
    account.sent += max(-amount, 0)
    account.transactions += 1


def settle(record: Transaction, *, failed: bool) -> None:
    """Finish an order in `processing`, inside the caller's transaction; if it failed, the money is returned."""
    at = clock.now()
    record.status = Status.FAILED if failed else Status.FULFILLED
    record.updated_at = at
    record.save(update_fields=["status", "updated_at"])
    if not failed:
        announce_transaction(record)
        return
    announce_transaction(record, failureReason=_FAILURE_REASON)
    post(reversal_of(record.transaction_id, record.currency, record.amount + record.fee, to=API_USER), at)


def differences() -> list[str]:
    """Describe every disagreement between entries, totals and records; empty if the books agree."""
    found = [breach for currency in merchant_accounts() for breach in _balance_breaks(currency)]
    sums = {
        row["account"]: row["total"] for row in Entry.objects.values("account").annotate(total=Sum("amount"))
    }
    accounts = Account.objects.all()
    found += [
        f"{each}: not the sum of its entries" for each in accounts if each.balance != sums.get(each.id, 0)
    ]
    return [*found, *_unbalanced("transaction"), *_unbalanced("payment"), *_wrongly_entered_payments()]


def _unbalanced(kind: str) -> list[str]:
    lines = Entry.objects.filter(**{f"{kind}__isnull": False})
    totals = lines.values(kind, "account__currency").annotate(total=Sum("amount"))
    unbalanced = totals.exclude(total=0).count()
    return [f"{unbalanced} {kind}s do not add up to zero"] if unbalanced else []


def _wrongly_entered_payments() -> list[str]:
    """Completed payments must have moved both amounts through the exchange; others nothing."""
    lines = Entry.objects.filter(payment__isnull=False, account__owner=EXCHANGE)
    moved = (
        lines.values_list("payment", "account__currency").annotate(total=Sum("amount")).order_by("payment")
    )
    entered = {(payment, currency, total) for payment, currency, total in moved}
    expected = set()
    for payment in Payment.objects.filter(state=Payment.State.COMPLETED):
        expected.add((payment.id, payment.incoming_currency, payment.incoming_amount))
        expected.add((payment.id, payment.outgoing_currency, -payment.outgoing_amount))
    wrong = len({payment for payment, _, _ in entered ^ expected})
    return [f"{wrong} payments have not moved what their state says"] if wrong else []


def _balance_breaks(currency: str) -> list[str]:
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
    # SQL, because clients poll balances: the ORM would take longer to build this query than the rest of the response.
    accounts = Account.objects.raw("SELECT * FROM sandbox_account WHERE owner = %s ORDER BY id", [MERCHANT])
    return {account.currency: account for account in accounts}
