"""What the rows of a file or batch add up to, and how far a batch has come."""

from dataclasses import dataclass

from django.db.models import Count

from backoffice.operations.kinds.base import Debit
from backoffice.operations.kinds.batch import CurrencyTotal, currency_totals
from backoffice.operations.models.batches import BatchRow, PayoutFile
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import CLOSED, IN_FLIGHT, Status


def file_totals(file: PayoutFile) -> list[CurrencyTotal]:
    """The totals of the rows without errors, by currency. One query."""
    amounts = file.rows.filter(has_errors=False).order_by().values_list("currency", "amount")
    return currency_totals(Debit(currency, amount) for currency, amount in amounts if amount is not None)


@dataclass(frozen=True)
class BatchProgress:
    """How many rows of a batch are operations in each status, are none yet, or are another operation's duplicate."""

    by_status: dict[Status, int]
    waiting: int
    duplicates: int

    @property
    def rows(self) -> int:
        return sum(self.by_status.values()) + self.waiting + self.duplicates

    @property
    def closed(self) -> int:
        """How many rows need nothing more."""
        return self.duplicates + sum(self.by_status.get(status, 0) for status in CLOSED)

    @property
    def failed(self) -> int:
        return self.by_status.get(Status.FAILED, 0)

    @property
    def unsent(self) -> int:
        return self.by_status.get(Status.APPROVED, 0)

    @property
    def in_flight(self) -> int:
        return sum(self.by_status.get(status, 0) for status in IN_FLIGHT)

    @property
    def fingerprint(self) -> str:
        counts = (f"{status.value}{count}" for status, count in self.by_status.items())
        return ".".join([*counts, str(self.waiting), str(self.duplicates)])


def batch_progress(batch: Operation) -> BatchProgress:
    """The progress of this batch. One query."""
    counted = BatchRow.objects.filter(batch=batch).order_by()
    found = counted.values_list("operation__status").annotate(n=Count("pk"), twice=Count("duplicate_of"))
    counts = {status: (count, twice) for status, count, twice in found}
    none, duplicates = counts.pop(None, (0, 0))
    by_status = {status: counts[status][0] for status in Status if status in counts}
    return BatchProgress(by_status, none - duplicates, duplicates)
