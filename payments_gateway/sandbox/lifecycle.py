"""Operate the simulation: create and seed it, change options and clock, pay as a customer, reset; and its state."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.db.models import Case, Count, F, Q, Sum, When
from django.db.transaction import atomic

from payments_gateway import BANKS
from payments_gateway.sandbox import API_KEY, API_USER, MERCHANT, OWNERS, USER_VERSIONS, clock, otp
from payments_gateway.sandbox.amounts import DECIMALS, amount_text, minor_units
from payments_gateway.sandbox.books import ledger, payments, settlement
from payments_gateway.sandbox.books.history import HistoryEvent, history
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.registry import FAULTS
from payments_gateway.sandbox.merchant import details as merchant
from payments_gateway.sandbox.models import (
    Account,
    Arrival,
    Entry,
    Payment,
    SandboxState,
    Status,
    Transaction,
    Transfer,
    WalletTransfer,
    Withdrawal,
)
from payments_gateway.sandbox.settings import (
    DATABASE,
    PROFILE,
    PROFILE_NAME,
    SEED,
    SETTLE_AFTER,
    TRANSACTIONS,
)
from payments_gateway.sandbox.webhooks import delivery
from payments_gateway.sandbox.webhooks import outbox as webhooks

MAX_OFFSET = timedelta(days=3650)
"""How far ahead of real time the provider's clock can be put."""

_OPTIONS = ("settle_after", "otp_required", "token_reuse", "fail_next", "customer_pays_after")
_SECONDS = ("settle_after", "customer_pays_after")
_SEED_BATCH = 2_000
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


def prepare() -> SandboxState:
    """Create the database if needed, seed it if it is new, and apply the options of this start."""
    DATABASE.resolve().parent.mkdir(parents=True, exist_ok=True)
    call_command("migrate", verbosity=0, interactive=False)
    with atomic(durable=True):
        _open_accounts()
        state = SandboxState.objects.first() or _create_state()
        merchant.ensure_merchant()
        _restore_options(state)
    clock.set_offset(state.clock_ahead)
    return state


def _create_state() -> SandboxState:
    end = clock.last_midnight()
    return SandboxState.objects.create(
        seed=SEED,
        seeded_until=end,
        last_seeded_id=_seed_books(SEED, TRANSACTIONS, end),
        totp_secret=otp.new_secret(),
        one_time_code=otp.new_code(),
    )


def _seed_books(seed: int, transactions: int, end: datetime) -> int:
    """Fill empty books, inside the caller's transaction, and return the id of the last record.

    Plain SQL: a history of 100,000 records is about 300,000 rows, for which the ORM would need half a minute.
    """
    accounts = {(account.owner, account.currency): account for account in Account.objects.all()}
    events = enumerate(history(seed, transactions, end), start=1)
    last_id = 0
    while batch := list(islice(events, _SEED_BATCH)):
        _insert_batch(batch, accounts)
        last_id = batch[-1][0]
    Account.objects.bulk_update(accounts.values(), ["balance", "received", "sent", "transactions"])
    return last_id


def _open_accounts() -> None:
    """Create the missing accounts: all in a new database, those of new currencies in one of an earlier release."""
    owned = [(owner, currency) for currency in DECIMALS for owner in OWNERS]
    Account.objects.bulk_create(
        [Account(owner=owner, currency=currency) for owner, currency in owned], ignore_conflicts=True
    )


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
        **ledger.record_values(event.movement, event.at, event.transaction_id, balance, status),
        "id": number,
        "created_at": connection.ops.adapt_datetimefield_value(event.at),
        "updated_at": connection.ops.adapt_datetimefield_value(event.settled_at),
    }


def _entries(number: int, event: HistoryEvent, accounts: Accounts) -> Iterator[tuple[int, int, int]]:
    for owner, amount in event.movement.entries():
        account = accounts[owner, event.movement.currency]
        ledger.add_to_totals(account, amount)
        yield number, account.id, amount


def _withdrawals(batch: Batch) -> Iterator[tuple[int, str, str, str, str, bool]]:
    for number, event in batch:
        payee = event.payee
        if payee is not None:
            bank = BANKS[payee.bank_code]
            yield number, payee.account_number, payee.name, bank, payee.bank_code, event.failed


def _restore_options(state: SandboxState) -> None:
    state.settle_after = SETTLE_AFTER
    state.otp_required = PROFILE.otp_required
    state.token_reuse = False
    state.fail_next = 0
    state.customer_pays_after = None
    state.save(update_fields=_OPTIONS)


def options_of(state: SandboxState) -> dict[str, object]:
    values = {name: getattr(state, name) for name in _OPTIONS}
    return values | {name: _exact_seconds(values[name]) for name in _SECONDS}


def _exact_seconds(seconds: float | None) -> Decimal | None:
    return None if seconds is None else Decimal(str(seconds)).normalize()


@atomic(durable=True)
def change_options(changes: Mapping[str, object]) -> None:
    """Change some options until the next start or reset."""
    SandboxState.objects.update(**changes)


def reset_to_seed() -> int:
    """Truncate the books to the seeded history, reset the clock, clear all faults. Return the number of records left.

    Seeded records are final, so removing later ones restores the books exactly. Requests that a fault holds are
    never executed.
    """
    FAULTS.clear(abandon=True)
    with clock.offset_lock:
        state = _restore()
        clock.set_offset(timedelta())
    return state.last_seeded_id


@atomic(durable=True)
def _restore() -> SandboxState:
    state = SandboxState.objects.get()
    _delete_since_seed(state.last_seeded_id)
    _recompute_totals()
    merchant.reset_merchant()
    webhooks.delete_deliveries()
    _restore_options(state)
    state.last_totp_step = 0
    state.clock_ahead = timedelta()
    state.save(update_fields=["last_totp_step", "clock_ahead"])
    otp.issue_code(state)
    return state


def _delete_since_seed(last_seeded_id: int) -> None:
    for orders in (Withdrawal, Transfer, WalletTransfer):
        orders.objects.filter(transaction_id__gt=last_seeded_id).delete()
    Entry.objects.filter(Q(transaction_id__gt=last_seeded_id) | Q(payment__isnull=False)).delete()
    Transaction.objects.filter(id__gt=last_seeded_id).delete()
    Arrival.objects.all().delete()
    Payment.objects.all().delete()


def _recompute_totals() -> None:
    Account.objects.update(balance=0, received=0, sent=0, transactions=0)
    added = Sum(Case(When(amount__gt=0, then=F("amount")), default=0))
    subtracted = Sum(Case(When(amount__lt=0, then=-F("amount")), default=0))
    totals = Entry.objects.values("account").annotate(added=added, subtracted=subtracted, lines=Count("id"))
    for row in totals:
        Account.objects.filter(id=row["account"]).update(
            received=row["added"],
            sent=row["subtracted"],
            balance=row["added"] - row["subtracted"],
            transactions=row["lines"],
        )


def _advanced_offset(offset: timedelta, seconds: float) -> timedelta:
    if not 0 <= seconds <= MAX_OFFSET.total_seconds():
        raise _invalid_step()
    step = timedelta(milliseconds=round(seconds * 1000))
    if offset + step > MAX_OFFSET:
        raise _invalid_step()
    return offset + step


def _invalid_step() -> RefusedError:
    phrase = f"must put the clock forward, to at most {MAX_OFFSET.days} days ahead of real time"
    return RefusedError(400, f"seconds {phrase}", [("seconds", phrase)])


def startup_banner(state: SandboxState, address: Sequence[Any]) -> str:
    """Text for the terminal: what this is, its address, the credentials, and where the one-time codes are."""
    host, port = address[0], address[1]
    base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return "\n".join(
        (
            "",
            "SIMULATION of the Business Payments API: no real money moves.",
            f"  Profile        {PROFILE_NAME}",
            f"  Base addresses {base}/v2 and {base}/v4",
            f"  Console        {base}/_sandbox/   (balances, one-time codes, faults)",
            f"  X-Api-Key      {API_KEY}",
            f"  X-Api-User     {API_USER}",
            f"  X-User-Version {USER_VERSIONS[0]}",
            f"  One-time code  {state.one_time_code}   (type otp; codes of type totp are on the console)",
            f"  History        {state.last_seeded_id} transactions of seed {state.seed},"
            f" until {clock.iso_timestamp(state.seeded_until)}",
            f"Sandbox ready at {base}",
        )
    )


def current_codes() -> dict[str, object]:
    """The current one-time codes, in real time, as authenticator apps use it."""
    state, at = SandboxState.objects.get(), clock.real_now()
    step = otp.step_of(at)
    return {
        "totp": otp.totp(state.totp_secret, step),
        "secondsLeft": (step + 1) * otp.STEP_SECONDS - int(at.timestamp()),
        "used": step <= state.last_totp_step,
        "otp": state.one_time_code,
        "secret": state.totp_secret,
    }


def current_options() -> dict[str, object]:
    return options_of(SandboxState.objects.get())


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


def advance_clock(seconds: float) -> None:
    """Advance the provider's clock durably, settle what is due by then, and send the webhooks that are due.

    Raises RefusedError 400 for a step backwards, and beyond ten years.
    """
    with clock.offset_lock:
        with atomic(durable=True):
            state = SandboxState.objects.get()
            state.clock_ahead = _advanced_offset(state.clock_ahead, seconds)
            state.save(update_fields=["clock_ahead"])
        clock.set_offset(state.clock_ahead)
    settlement.settle_due()
    delivery.wake_delivery_thread()


def pay_as_customer(reference: str, amount: str | None) -> Payment:
    """Send this amount as the customer to the address of a payment, or the missing amount.

    Raises RefusedError: 404 when there is no such payment, 400 or 409 as `books.payments.pay_in`.
    """
    payment = Payment.objects.filter(reference=reference).first()
    if payment is None:
        raise RefusedError(404, "there is no payment with this reference")
    units = missing_units(payment) if amount is None else minor_units(amount, payment.incoming_currency)
    return payments.pay_in(payment.payment_id, units)


OPEN_PAYMENT_STATES = (Payment.State.PENDING, Payment.State.UNCONFIRMED, Payment.State.PROCESSING)


LATEST_SHOWN = 10


def open_payments() -> list[Payment]:
    """Payments that are not in a final state, newest first."""
    return list(Payment.objects.filter(state__in=OPEN_PAYMENT_STATES).order_by("-id")[:LATEST_SHOWN])
