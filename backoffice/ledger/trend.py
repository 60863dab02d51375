"""How a balance went, as a line for the eye and a sentence for everybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from backoffice.core.display import format_amount
from backoffice.ledger.models import Balance, BalanceSnapshot

WIDTH, HEIGHT, MARGIN = 240, 48, 4  # units of the drawing
REACHES_BACK = timedelta(hours=24)


@dataclass(frozen=True)
class Trend:
    """One currency over the last day. `points` are those of an SVG polyline, empty with fewer than two readings."""

    points: str
    sentence: str


@dataclass(frozen=True)
class Reading:
    """What a balance was at one moment."""

    at: datetime
    amount: Decimal


def trend_of(balance: Balance, snapshots: Sequence[BalanceSnapshot]) -> Trend:
    """The trend of a balance up to its last reading; snapshots of other currencies and of other times do not count."""
    since = balance.as_of - REACHES_BACK
    earlier = [
        Reading(snapshot.as_of, snapshot.amount)
        for snapshot in snapshots
        if snapshot.currency == balance.currency and since <= snapshot.as_of < balance.as_of
    ]
    readings = [*sorted(earlier, key=lambda reading: reading.at), Reading(balance.as_of, balance.amount)]
    if len(readings) < 2:
        return Trend("", "The trend begins with the second reading.")
    return Trend(_points(readings, since), _sentence(readings, balance.currency))


def _points(readings: Sequence[Reading], since: datetime) -> str:
    amounts = [reading.amount for reading in readings]
    lowest, span = min(amounts), max(amounts) - min(amounts)
    return " ".join(f"{_x(reading.at, since)},{_y(reading.amount - lowest, span)}" for reading in readings)


def _x(at: datetime, since: datetime) -> int:
    return int((at - since) * WIDTH / REACHES_BACK)


def _y(above: Decimal, span: Decimal) -> int:
    """From the top down; a balance that never moved lies in the middle."""
    share = above / span if span else Decimal("0.5")
    return HEIGHT - MARGIN - int(share * (HEIGHT - 2 * MARGIN))


def _sentence(readings: Sequence[Reading], currency: str) -> str:
    first, last = readings[0].amount, readings[-1].amount
    lowest = min(reading.amount for reading in readings)
    highest = max(reading.amount for reading in readings)
    hours = max(1, round((readings[-1].at - readings[0].at) / timedelta(hours=1)))
    moved = f"{'up' if last > first else 'down'} {format_amount(abs(last - first), currency)}"
    return (
        f"Last {hours} h: {moved if last != first else 'unchanged'}, lowest {format_amount(lowest, currency)}, "
        f"highest {format_amount(highest, currency)}"
    )
