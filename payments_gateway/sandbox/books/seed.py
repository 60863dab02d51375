"""Insert a generated history into empty books, a few thousand records at a time.

Plain SQL: a history of 100,000 records is about 300,000 rows, for which the ORM would need half a minute.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection

from payments_gateway import BANKS
from payments_gateway.sandbox.amounts import DECIMALS
from payments_gateway.sandbox.books.history import HistoryEvent, history
from payments_gateway.sandbox.books.ledger import add_to_totals, record_values
from payments_gateway.sandbox.models import Account, Status
from payments_gateway.sandbox.parties import MERCHANT, OWNERS

_BATCH = 2_000
_INSERT_RECORD = """
    INSERT INTO sandbox_transaction (
        id, transaction_id, currency, type, status, amount, fee, previous_balance, incoming, sender, username,
        from_currency, from_amount, created_at, updated_at
    ) VALUES (
        %(id)s, %(transaction_id)s, %(currency)s, %(type)s, %(status)s, %(amount)s, %(fee)s, %(previous_balance)s,
        %(incoming)s, %(sender)s, %(username)s, %(from_currency)s, %(from_amount)s, %(created_at)s, %(updated_at)s
    )
"""
_INSERT_ENTRY = "INSERT INTO sandbox_entry (transaction_id, account_id, amount) VALUES (%s, %s, %s)"
_INSERT_WITHDRAWAL = """
    INSERT INTO sandbox_withdrawal (transaction_id, account_number, account_name, bank, bank_code, will_fail)
    VALUES (%s, %s, %s, %s, %s, %s)
"""

Accounts = dict[tuple[str, str], Account]
Batch = list[tuple[int, HistoryEvent]]


def seed_books(seed: int, transactions: int, end: datetime) -> int:
    """Fill empty books, inside the caller's transaction, and return the id of the last record."""
    accounts = _open_accounts()
    events = enumerate(history(seed, transactions, end), start=1)
    last_id = 0
    while batch := list(islice(events, _BATCH)):
        _insert_batch(batch, accounts)
        last_id = batch[-1][0]
    Account.objects.bulk_update(accounts.values(), ["balance", "received", "sent", "transactions"])
    return last_id


def _open_accounts() -> Accounts:
    owned = [(owner, currency) for currency in DECIMALS for owner in OWNERS]
    created = Account.objects.bulk_create(
        Account(owner=owner, currency=currency) for owner, currency in owned
    )
    return {(account.owner, account.currency): account for account in created}


def _insert_batch(batch: Batch, accounts: Accounts) -> None:
    records: list[dict[str, Any]] = []
    entries: list[tuple[int, int, int]] = []
    for number, event in batch:
        records.append(_record(number, event, accounts))
        entries += _entries(number, event, accounts)
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT_RECORD, records)
        cursor.executemany(_INSERT_ENTRY, entries)
        cursor.executemany(_INSERT_WITHDRAWAL, list(_withdrawals(batch)))


def _record(number: int, event: HistoryEvent, accounts: Accounts) -> dict[str, Any]:
    balance = accounts[MERCHANT, event.movement.currency].balance
    status = str(Status.FAILED if event.failed else Status.FULFILLED)
    return {
        **record_values(event.movement, event.at, event.transaction_id, balance, status),
        "id": number,
        "created_at": connection.ops.adapt_datetimefield_value(event.at),
        "updated_at": connection.ops.adapt_datetimefield_value(event.settled_at),
    }


def _entries(number: int, event: HistoryEvent, accounts: Accounts) -> Iterator[tuple[int, int, int]]:
    for owner, amount in event.movement.entries():
        account = accounts[owner, event.movement.currency]
        add_to_totals(account, amount)
        yield number, account.id, amount


def _withdrawals(batch: Batch) -> Iterator[tuple[int, str, str, str, str, bool]]:
    for number, event in batch:
        payee = event.payee
        if payee is not None:
            bank = BANKS[payee.bank_code]
            yield number, payee.account_number, payee.name, bank, payee.bank_code, event.failed
