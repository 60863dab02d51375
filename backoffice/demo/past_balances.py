"""The balances of the month before the demo began, as the service's own list of transactions tells them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from backoffice.ledger.direction import direction
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.ledger.selectors import recent_transactions
from backoffice.ledger.services import SNAPSHOT_EVERY, slot_of
from backoffice.ledger.trend import LONG_REACH, REACHES_BACK
from payments_gateway import TransactionRecord


def make_past_balances(balances: Sequence[Balance]) -> None:
    """Keep a snapshot of each quarter of an hour of the last day, and of each hour of the month before.

    Call once, before any other is kept but today's.
    """
    began = min((balance.as_of for balance in balances), default=None)
    if began is None:
        return
    records = list(recent_transactions("", back_to=began - LONG_REACH))
    for balance in balances:
        own = [record for record in records if record.currency == balance.currency]
        BalanceSnapshot.objects.bulk_create(_before(balance, own), ignore_conflicts=True)


def _before(balance: Balance, newest_first: Iterable[TransactionRecord]) -> Iterator[BalanceSnapshot]:
    """Backwards: every transaction that a moment did not know yet is taken out again, so that the sums stay true."""
    then, records = _copy(balance, balance.as_of), iter(newest_first)
    record = next(records, None)
    for at in _moments(balance.as_of):
        while record is not None and record.created_at is not None and record.created_at >= at:
            _take_out(then, record)
            record = next(records, None)
        then = _copy(then, at)
        yield then


def _take_out(then: BalanceSnapshot, record: TransactionRecord) -> None:
    if record.previous_balance is not None:
        then.amount = record.previous_balance
    if direction(record) == "in":
        then.total_received -= record.amount
    else:
        then.total_sent -= record.amount
    then.transaction_count -= 1


def _moments(began: datetime) -> Iterator[datetime]:
    """The beginnings of the quarters of an hour, the newest first; further back than a day, of whole hours only."""
    steps = range(1, LONG_REACH // SNAPSHOT_EVERY)
    quarters = (slot_of(began) - SNAPSHOT_EVERY * step for step in steps)
    return (at for at in quarters if at >= began - REACHES_BACK or at.minute == 0)


def _copy(like: Balance | BalanceSnapshot, at: datetime) -> BalanceSnapshot:
    return BalanceSnapshot(
        currency=like.currency,
        slot=slot_of(at),
        as_of=at,
        amount=like.amount,
        total_received=like.total_received,
        total_sent=like.total_sent,
        transaction_count=like.transaction_count,
    )
