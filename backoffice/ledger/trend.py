"""How a balance went, as a line for the eye and a sentence for everybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from backoffice.core.display import format_amount
from backoffice.ledger.models import Balance, BalanceSnapshot

WIDTH, HEIGHT, MARGIN = 240, 48, 4  # units of the drawing
REACHES_BACK = timedelta(hours=24)
LONG_REACH = timedelta(days=30)


@dataclass(frozen=True)
class Trend:
    """One currency over some time. `points` are those of an SVG polyline, empty with fewer than two readings."""

    points: str
    sentence: str


@dataclass(frozen=True)
class Reading:
    """What a balance was at one moment."""

    at: datetime
    amount: Decimal


class _Told(NamedTuple):
    """What the service told of one balance at one moment, in the columns of `Balance`."""

    currency: str
    amount: Decimal
    total_received: Decimal
    total_sent: Decimal
    transaction_count: int
    as_of: datetime


def balances_over_thirty_days(now: datetime) -> list[tuple[Balance, Trend]]:
    """Every balance as last kept, by currency, with its trend up to then. One query of some hundred short rows."""
    earlier = BalanceSnapshot.objects.filter(slot__in=_slots(now)).order_by().values_list(*_Told._fields)
    known = Balance.objects.order_by().values_list(*_Told._fields).union(earlier, all=True)
    readings = [_Told._make(row) for row in known]
    newest = {told.currency: told for told in sorted(readings, key=lambda told: told.as_of)}
    balances = [Balance(**told._asdict()) for _, told in sorted(newest.items())]
    return [(balance, trend_of(balance, readings, reach=LONG_REACH)) for balance in balances]


def _slots(now: datetime) -> list[datetime]:
    """Where the readings of thirty days are looked for: every hour of the last day, twice in each day before.

    And every quarter of the hours in which the thirty days begin, since the sentence tells what came of them.
    """
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    slots = [hour - timedelta(hours=back) for back in range(LONG_REACH // timedelta(hours=1))]
    beginning = [hour - LONG_REACH + quarter * timedelta(minutes=15) for quarter in range(12)]
    return [*beginning, *(slot for back, slot in enumerate(slots) if back < 24 or slot.hour % 12 == 0)]


def trend_of(
    balance: Balance, snapshots: Sequence[BalanceSnapshot | _Told], *, reach: timedelta = REACHES_BACK
) -> Trend:
    """The trend of a balance up to its last reading; snapshots of other currencies and of other times do not count."""
    since = balance.as_of - reach
    earlier = [
        Reading(snapshot.as_of, snapshot.amount)
        for snapshot in snapshots
        if snapshot.currency == balance.currency and since <= snapshot.as_of < balance.as_of
    ]
    readings = [*sorted(earlier, key=lambda reading: reading.at), Reading(balance.as_of, balance.amount)]
    if len(readings) < 2:
        return Trend("", "The trend begins with the second reading.")
    return Trend(_points(readings, since, reach), _sentence(readings, balance.currency))


def _points(readings: Sequence[Reading], since: datetime, reach: timedelta) -> str:
    amounts = [reading.amount for reading in readings]
    lowest, span = min(amounts), max(amounts) - min(amounts)
    return " ".join(
        f"{int((reading.at - since) * WIDTH / reach)},{_y(reading.amount - lowest, span)}"
        for reading in readings
    )


def _y(above: Decimal, span: Decimal) -> int:
    """From the top down; a balance that never moved lies in the middle."""
    share = above / span if span else Decimal("0.5")
    return HEIGHT - MARGIN - int(share * (HEIGHT - 2 * MARGIN))


def _sentence(readings: Sequence[Reading], currency: str) -> str:
    first, last = readings[0].amount, readings[-1].amount
    lowest = min(reading.amount for reading in readings)
    highest = max(reading.amount for reading in readings)
    moved = f"{'up' if last > first else 'down'} {format_amount(abs(last - first), currency)}"
    span = _span(readings[-1].at - readings[0].at)
    return (
        f"Last {span}: {moved if last != first else 'unchanged'}, lowest {format_amount(lowest, currency)}, "
        f"highest {format_amount(highest, currency)} of {len(readings)} readings"
    )


def _span(span: timedelta) -> str:
    """`23 h`, or `30 d` where there is more than two days of it."""
    hours = max(1, round(span / timedelta(hours=1)))
    return f"{hours} h" if hours <= 48 else f"{round(hours / 24)} d"
