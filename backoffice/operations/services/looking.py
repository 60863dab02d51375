"""What the service shows of one attempt. Reads only, and proves nothing by itself: `confirming` draws the conclusions.

Two ways to know a transaction. The service named it when it answered: then it is known by its id. It named none: then
it is what came after our watermark, is this operation by its content, and belongs to nobody else.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from backoffice.core import clock
from backoffice.core.gateway import gateway
from backoffice.ledger import selectors as ledger
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds import ChangeKind, MoneyKind, content_of
from backoffice.operations.models import Attempt, Operation
from payments_gateway import GatewayError, TransactionRecord

WINDOW, SKEW = Attempt.MAY_TAKE, Attempt.SKEW
NAMED_REACHES_BACK = timedelta(
    days=1
)  # how much older than our watermark a transaction that was named may claim to be
PASSES = 4  # how often a list that changes meanwhile is read


class ListMovesError(Exception):
    """No two passes through the service's list agreed, so nothing can be said of it now."""


@dataclass(frozen=True)
class Look:
    """What one reading of the list showed: the transactions that can be ours, or why it could not be read."""

    at: datetime
    found: list[TransactionRecord] = field(default_factory=list)
    problem: str = ""
    is_done: bool | None = (
        None  # of a kind that the list does not show: whether another read shows that it is done
    )

    is_nowhere: bool = False  # no read of the service can tell

    def __str__(self) -> str:
        if self.is_nowhere:
            return "No read of the service shows what became of it: people have to ask the service"
        if self.problem:
            return self.problem
        if self.is_done is not None:
            return "The service shows that it is done" if self.is_done else "The service does not show it yet"
        if len(self.found) == 1:
            return f"Found as {self.found[0].transaction_id}: {self.found[0].status}"
        if self.found:
            return f"{len(self.found)} transactions in the list could be this one"
        return "Not in the service's list yet"


def look(operation: Operation, attempt: Attempt) -> Look:
    """Ask the service what became of this attempt. Never raises for what the service or the content does."""
    now = clock.now()
    try:
        if attempt.service_transaction_id:
            return Look(now, _named(operation, attempt))
        kind, payload = content_of(operation)
        if isinstance(kind, MoneyKind):
            return Look(now, candidates(operation, attempt, partial(kind.recognises, payload)))
        if isinstance(kind, ChangeKind):
            is_done = kind.is_done(gateway(), payload)
            return Look(now, is_done=is_done, is_nowhere=is_done is None)
        return Look(now, is_nowhere=True)  # of our own: it was never sent
    except GatewayError as exc:
        return Look(now, problem=f"The service could not be read: {exc}")
    except (UnreadableContentError, ListMovesError) as exc:
        return Look(now, problem=str(exc))


def candidates(
    operation: Operation, attempt: Attempt, recognises: Callable[[TransactionRecord], bool]
) -> list[TransactionRecord]:
    """Transactions that can be this attempt by content and by the service's own clock, and that nobody has claimed.

    The list is read until two passes agree, since its pages shift while they are read. Raises GatewayError,
    ListMovesError.
    """
    mark = attempt.watermark_service_time
    if mark is None:
        return []  # without the service's time nothing tells new from old

    def found() -> list[TransactionRecord]:
        return [
            record
            for record in ledger.recent_transactions(operation.currency, back_to=mark - SKEW)
            if recognises(record) and is_of_its_time(record, attempt)
        ]

    return unclaimed(agreed(found))


def is_of_its_time(record: TransactionRecord, attempt: Attempt) -> bool:
    """Whether the transaction is new since the attempt's watermark, and not too new to be its own."""
    mark = attempt.watermark_service_time
    return (
        mark is not None
        and record.created_at is not None
        and mark - SKEW <= record.created_at <= mark + WINDOW
        and record.transaction_id not in {attempt.watermark_transaction_id, *(attempt.watermark_shown or [])}
    )


def _named(operation: Operation, attempt: Attempt) -> list[TransactionRecord]:
    """The transaction that the service named in its answer."""
    back_to = (attempt.watermark_service_time or attempt.started_at) - NAMED_REACHES_BACK
    records = ledger.recent_transactions(operation.currency, back_to=back_to)
    return [record for record in records if record.transaction_id == attempt.service_transaction_id]


def agreed(read: Callable[[], list[TransactionRecord]]) -> list[TransactionRecord]:
    """What two passes in a row showed alike. Raises ListMovesError."""
    seen = read()
    for _ in range(PASSES - 1):
        again = read()
        if _gist(again) == _gist(seen):
            return again
        seen = again
    raise ListMovesError("The service's list changed each time it was read")


def _gist(records: list[TransactionRecord]) -> dict[str, str]:
    return {record.transaction_id: record.status for record in records}


def unclaimed(records: list[TransactionRecord]) -> list[TransactionRecord]:
    """Those that are no attempt's own."""
    claimed = set(
        Attempt.objects.filter(
            service_transaction_id__in=[record.transaction_id for record in records]
        ).values_list("service_transaction_id", flat=True)
    )
    return [record for record in records if record.transaction_id not in claimed]
