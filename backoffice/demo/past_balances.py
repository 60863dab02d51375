"""The balances of the day before the demo began. They are made up, backwards from the ones that the service tells."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.ledger.services import SNAPSHOT_EVERY, slot_of
from backoffice.ledger.trend import REACHES_BACK

_STEPS = REACHES_BACK // SNAPSHOT_EVERY - 1
_MOVES_ONE_IN = 5  # quarters of an hour
_LARGEST_SHARE = 40  # thousandths of the balance that move at once


def make_past_balances(balances: Sequence[Balance]) -> None:
    """Keep a snapshot of each quarter of an hour of the last day. Call once, before any other is kept but today's."""
    chance = random.Random(2026)  # noqa: S311 - the same day each time, nothing secret
    for balance in balances:
        BalanceSnapshot.objects.bulk_create(list(_day_before(balance, chance)), ignore_conflicts=True)


def _day_before(balance: Balance, chance: random.Random) -> Iterator[BalanceSnapshot]:
    """Backwards: what was received or sent in each quarter is taken out again, so that the sums stay true."""
    amount, received, sent = balance.amount, balance.total_received, balance.total_sent
    count, at = balance.transaction_count, balance.as_of
    for _ in range(_STEPS):
        at -= SNAPSHOT_EVERY
        moved = _moved(amount, chance)
        if moved > 0 and received >= moved and count:
            amount, received, count = amount - moved, received - moved, count - 1
        elif moved < 0 and sent >= -moved and count:
            amount, sent, count = amount - moved, sent + moved, count - 1
        yield _snapshot(balance.currency, at, amount, received, sent, count)


def _moved(amount: Decimal, chance: random.Random) -> Decimal:
    """What came in (or left, if negative) in one quarter of an hour; mostly nothing."""
    if chance.randrange(_MOVES_ONE_IN):
        return Decimal(0)
    share = Decimal(chance.randrange(-_LARGEST_SHARE, _LARGEST_SHARE)) / 1000
    return (amount * share).quantize(amount)


def _snapshot(
    currency: str, at: datetime, amount: Decimal, received: Decimal, sent: Decimal, count: int
) -> BalanceSnapshot:
    return BalanceSnapshot(
        currency=currency,
        slot=slot_of(at),
        as_of=at,
        amount=amount,
        total_received=received,
        total_sent=sent,
        transaction_count=count,
    )
