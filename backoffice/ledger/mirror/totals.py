"""Day totals by UTC day and facet: updated with every row written, and verified against the rows."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from backoffice.core.fields import EXACT
from backoffice.ledger.models import DayTotal, Transaction

TotalKey = tuple[date, int]
"""The UTC day and the facet id."""


@dataclass
class ExactSum:
    """A count and the sums of amounts and fees; as a difference, each may be negative."""

    count: int = 0
    amount: Decimal = Decimal(0)
    fee: Decimal = Decimal(0)

    def __bool__(self) -> bool:
        return bool(self.count or self.amount or self.fee)

    def __str__(self) -> str:
        return f"{self.count} of {self.amount:f}, fees {self.fee:f}"

    def add(self, amount: Decimal, fee: Decimal | None) -> None:
        self.count += 1
        self.amount = EXACT.add(self.amount, amount)
        if fee is not None:
            self.fee = EXACT.add(self.fee, fee)

    def subtract(self, amount: Decimal, fee: Decimal | None) -> None:
        self.count -= 1
        self.amount = EXACT.subtract(self.amount, amount)
        if fee is not None:
            self.fee = EXACT.subtract(self.fee, fee)


@dataclass
class TotalDifferences:
    """Changes to the day totals, collected row by row."""

    sums: dict[TotalKey, ExactSum] = field(default_factory=lambda: defaultdict(ExactSum))

    def at(self, occurred_at: datetime, facet_id: int) -> ExactSum:
        """The sum for the UTC day and facet of a transaction, whatever the viewer's time zone."""
        return self.sums[utc_day(occurred_at), facet_id]

    def nonzero(self) -> dict[TotalKey, ExactSum]:
        """The differences that are not zero."""
        return {key: total for key, total in self.sums.items() if total}


@dataclass(frozen=True)
class TotalDiscrepancy:
    """A stored day total that differs from the sum of its rows."""

    day: date
    facet_id: int
    stored: ExactSum
    counted: ExactSum

    def __str__(self) -> str:
        return f"{self.day} facet {self.facet_id}: stored {self.stored}; counted {self.counted}"


def utc_day(moment: datetime) -> date:
    """The UTC day of a moment. Day totals use it everywhere."""
    return moment.astimezone(UTC).date()


def total_discrepancies() -> Iterator[TotalDiscrepancy]:
    """Every day total that differs from its rows.

    Reads all rows: minutes for ten million, so only for a command. Run it in a transaction with a consistent snapshot,
    or while no sync runs.
    """
    counted = TotalDifferences()
    listed = Transaction.objects.filter(missing_since__isnull=True).order_by()
    rows = listed.values_list("occurred_at", "facet_id", "amount", "fee")
    for occurred_at, facet_id, amount, fee in rows.iterator(chunk_size=10_000):
        counted.at(occurred_at, facet_id).add(amount, fee)
    stored = {
        (total.day, total.facet_id): ExactSum(total.count, total.amount, total.fee)
        for total in DayTotal.objects.order_by().iterator()
    }
    for day, facet_id in sorted(counted.sums.keys() | stored.keys()):
        stored_sum, counted_sum = (
            stored.get((day, facet_id), ExactSum()),
            counted.sums.get((day, facet_id), ExactSum()),
        )
        if stored_sum != counted_sum:
            yield TotalDiscrepancy(day, facet_id, stored_sum, counted_sum)
