"""Enters a told history into empty books, a few thousand records at a time."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from payments_gateway.reference import BANKS
from payments_gateway.sandbox.amounts import DECIMALS
from payments_gateway.sandbox.history import Event, history
from payments_gateway.sandbox.ledger import count, record_of
from payments_gateway.sandbox.models import Account, Entry, Status, Transaction, Withdrawal
from payments_gateway.sandbox.movements import MERCHANT, OWNERS

_BATCH = 2_000

Accounts = dict[tuple[str, str], Account]


def sow(seed: int, transactions: int, end: datetime) -> int:
    """Fill empty books, inside the caller's transaction, and return the id of the last record."""
    accounts = _open_accounts()
    events = enumerate(history(seed, transactions, end), start=1)
    last_id = 0
    while batch := list(islice(events, _BATCH)):
        _enter(batch, accounts)
        last_id = batch[-1][0]
    Account.objects.bulk_update(accounts.values(), ["balance", "received", "sent", "transactions"])
    return last_id


def _open_accounts() -> Accounts:
    owned = [(owner, currency) for currency in DECIMALS for owner in OWNERS]
    created = Account.objects.bulk_create(
        Account(owner=owner, currency=currency) for owner, currency in owned
    )
    return {(account.owner, account.currency): account for account in created}


def _enter(batch: list[tuple[int, Event]], accounts: Accounts) -> None:
    records: list[Transaction] = []
    entries: list[Entry] = []
    for number, event in batch:
        records.append(_record(number, event, accounts))
        entries += _entries(records[-1], event, accounts)
    Transaction.objects.bulk_create(records)
    Entry.objects.bulk_create(entries)
    Withdrawal.objects.bulk_create(_withdrawals(batch))


def _record(number: int, event: Event, accounts: Accounts) -> Transaction:
    record = record_of(
        event.movement,
        event.at,
        transaction_id=event.transaction_id,
        previous_balance=accounts[MERCHANT, event.movement.currency].balance,
        status=Status.FAILED if event.failed else Status.FULFILLED,
    )
    record.id = number
    record.updated_at = event.settled_at
    return record


def _entries(record: Transaction, event: Event, accounts: Accounts) -> Iterator[Entry]:
    for owner, amount in event.movement.entries():
        account = accounts[owner, record.currency]
        count(account, amount)
        yield Entry(transaction=record, account=account, amount=amount)


def _withdrawals(batch: list[tuple[int, Event]]) -> Iterator[Withdrawal]:
    for number, event in batch:
        if event.payee is not None:
            yield Withdrawal(
                transaction_id=number,
                account_number=event.payee.account_number,
                account_name=event.payee.name,
                bank=BANKS[event.payee.bank_code],
                bank_code=event.payee.bank_code,
                will_fail=event.failed,
            )
