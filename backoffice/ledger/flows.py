"""What came in and went out of each balance, day by day and by type. Read from the day totals, never from the rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, localcontext
from operator import attrgetter
from typing import NamedTuple, TypeVar

from backoffice.core.fields import SUMS
from backoffice.ledger.mirrored import DayTotal

Key = TypeVar("Key")

DAYS = 30
_TYPES = {
    "deposit": "Deposits",
    "withdrawal": "Withdrawals",
    "sent": "Crypto sent",
    "transfer": "Transfers",
    "internalTransfer": "Internal transfers",
    "conversion": "Conversions",
}


class Total(NamedTuple):
    """So many transactions of one currency, type and direction on one UTC day."""

    day: date
    currency: str
    type: str
    direction: str
    number: int
    amount: Decimal


@dataclass(frozen=True)
class Day:
    """One UTC day of one currency, without fees; both are zero where nothing moved."""

    day: date
    received: Decimal
    sent: Decimal


@dataclass(frozen=True)
class Volume:
    """All transactions of one type in one currency, whichever way they went.

    `share` is a whole percentage of the largest volume in the currency, for the length of a bar.
    """

    label: str
    count: int
    amount: Decimal
    share: int


@dataclass(frozen=True)
class Flow:
    """One currency over the days, the oldest first, and by type, the largest volume first."""

    currency: str
    days: list[Day]
    volumes: list[Volume]

    @property
    def received(self) -> Decimal:
        """What came in on all the days."""
        return _sum(day.received for day in self.days)

    @property
    def sent(self) -> Decimal:
        """What went out on all the days."""
        return _sum(day.sent for day in self.days)

    @property
    def count(self) -> int:
        """How many transactions there were, those too of which nothing tells the direction."""
        return sum(volume.count for volume in self.volumes)


def flows(today: date) -> list[Flow]:
    """Every currency with a transaction on the last thirty UTC days, up to and with this one. One query.

    A transaction counts whatever its status: what failed after it was taken from the balance comes back as a record
    of its own, so that leaving either out would tell of money that never moved. What the service lists no more does
    not count.
    """
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    by_currency = _grouped(_totals(days[0], today), attrgetter("currency"))
    return [
        Flow(currency, list(_days(days, totals)), _volumes(totals))
        for currency, totals in sorted(by_currency.items())
    ]


def _totals(first: date, last: date) -> Iterator[Total]:
    found = DayTotal.objects.filter(day__gte=first, day__lte=last, count__gt=0).order_by()
    facet = ("facet__currency", "facet__type", "facet__direction")
    return (Total._make(row) for row in found.values_list("day", *facet, "count", "amount"))


def _days(days: list[date], totals: list[Total]) -> Iterator[Day]:
    ways = _grouped(totals, attrgetter("day", "direction"))
    for day in days:
        received, sent = (_amount(ways.get((day, way), [])) for way in ("in", "out"))
        yield Day(day, received, sent)


def _volumes(totals: list[Total]) -> list[Volume]:
    types = _grouped(totals, attrgetter("type"))
    amounts = {name: _amount(of_type) for name, of_type in types.items()}
    largest = max(amounts.values())
    return [
        Volume(_label(name), sum(total.number for total in types[name]), amount, _percent(amount, largest))
        for name, amount in sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _label(name: str) -> str:
    """Words for the service's types; its own word for one that we do not know."""
    return _TYPES.get(name, name) or "Type not told"


def _percent(amount: Decimal, largest: Decimal) -> int:
    return int(amount * 100 / largest) if largest else 0


def _amount(totals: Iterable[Total]) -> Decimal:
    return _sum(total.amount for total in totals)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    with localcontext(SUMS):
        return sum(amounts, Decimal(0))


def _grouped(totals: Iterable[Total], key: Callable[[Total], Key]) -> dict[Key, list[Total]]:
    groups: dict[Key, list[Total]] = defaultdict(list)
    for total in totals:
        groups[key(total)].append(total)
    return groups
