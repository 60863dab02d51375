"""What the service shows of one attempt. Reads only, and proves nothing by itself: `confirming` draws the conclusions.

Two ways to know a transaction. The service named it when it answered: then it is known by its id. It named none: then
it is what came after our watermark, is this operation by its content, and belongs to nobody else.

What came after the watermark is told by ids first: the list was read just before the claim, and what it showed then is
not ours. Time only bounds what has to be held in view, and widely, since the Date header that sets the mark may be some
minutes off the times in the service's own list: so ours is always among the candidates, and of several none is taken.
But a view so wide holds what was executed before ours, too, and was listed only afterwards; and if ours was never
executed, that one is alone in it. So one that left the balance as we saw it is not taken: it came before our look. Nor
is one whose own time is before the mark, unless the service accepted ours and that one found the balance as we had seen
it: a balance that lags as the list does may have been told without it. One that tells no time is never taken. Each of
these keeps every other one from being taken: then people decide.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from backoffice.audit.canonical import storable
from backoffice.core import clock
from backoffice.core.gateway import gateway
from backoffice.ledger import selectors as ledger
from backoffice.operations.check_results import CheckResult, MismatchReason
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds import ChangeKind, MoneyKind, content_of
from backoffice.operations.models import ID_LENGTH, Attempt, Operation
from backoffice.operations.states import Status
from payments_gateway import GatewayError, TransactionRecord

WINDOW, SKEW = Attempt.MAY_TAKE, Attempt.SKEW
EXACT = timedelta(seconds=5)  # so much earlier than the mark is not yet before it
NAMED_REACHES_BACK = timedelta(
    days=1
)  # how much older than our watermark a transaction that was named may claim to be
PASSES = 4  # how often a list that changes meanwhile is read


class ListMovesError(Exception):
    """No two passes through the service's list agreed, so nothing can be said of it now."""


_PROBLEMS: dict[type[Exception], CheckResult] = {
    UnreadableContentError: CheckResult.CONTENT_UNREADABLE,
    ListMovesError: CheckResult.LIST_CHANGING,
}


@dataclass(frozen=True)
class Look:
    """What one reading of the list showed: the transactions that can be ours, or why it could not be read."""

    at: datetime
    found: list[TransactionRecord] = field(default_factory=list)
    problem: CheckResult | None = None  # why it could not be read
    error: str = ""  # what the client said of that
    rejected_because: MismatchReason | None = None  # why the only one that was found is not taken
    is_done: bool | None = (
        None  # of a kind that the list does not show: whether another read shows that it is done
    )

    is_nowhere: bool = False  # no read of the service can tell

    @property
    def result(self) -> tuple[CheckResult, dict[str, Any]]:
        """What is kept of it: a code and its parameters."""
        if self.is_nowhere:
            return CheckResult.NOT_OBSERVABLE, {}
        if self.problem:
            return self.problem, {"error": storable(self.error)[:250]} if self.error else {}
        if self.is_done is not None:
            return CheckResult.DONE if self.is_done else CheckResult.NOT_DONE, {}
        return self._what_was_found()

    def _what_was_found(self) -> tuple[CheckResult, dict[str, Any]]:
        if not self.found:
            return CheckResult.NOT_LISTED, {}
        if len(self.found) > 1:
            return CheckResult.SEVERAL_CANDIDATES, {"count": len(self.found)}
        only = self.found[0]
        if self.rejected_because:
            reason = self.rejected_because.value
            return CheckResult.CANDIDATE_REJECTED, {"transaction": only.transaction_id, "reason": reason}
        return CheckResult.FOUND, {"transaction": only.transaction_id, "status": only.status}


def look(operation: Operation, attempt: Attempt) -> Look:
    """Ask the service what became of this attempt. Never raises for what the service or the content does."""
    now = clock.now()
    try:
        own = _own(operation, attempt) if attempt.service_transaction_id else []
        if attempt.service_transaction_id and not _may_hide_ours(attempt, own):
            return Look(now, own)
        kind, payload = content_of(operation)
        if isinstance(kind, MoneyKind):
            found = own + candidates(operation, attempt, partial(kind.recognises, payload))
            is_new = len(found) == 1 and not own
            rejected = _mismatch(operation, attempt, found[0]) if is_new else None
            return Look(now, found, rejected_because=rejected)
        if isinstance(kind, ChangeKind):
            is_done = kind.is_done(gateway(), payload)
            return Look(now, is_done=is_done, is_nowhere=is_done is None)
        return Look(now, is_nowhere=True)  # of our own: it was never sent
    except GatewayError as exc:
        return Look(now, problem=CheckResult.PROVIDER_UNREADABLE, error=str(exc))
    except (UnreadableContentError, ListMovesError) as exc:
        return Look(now, problem=_PROBLEMS[type(exc)])


def candidates(
    operation: Operation, attempt: Attempt, recognises: Callable[[TransactionRecord], bool]
) -> list[TransactionRecord]:
    """Transactions that can be this attempt by content, by id and by their time, and that nobody has claimed.

    The list is read until two passes agree, since its pages shift while they are read. Raises GatewayError,
    ListMovesError.
    """
    if attempt.watermark_service_time is None:
        return []  # without the service's time nothing tells new from old

    def found() -> list[TransactionRecord]:
        return [
            record
            for record in ledger.recent_transactions(operation.currency, back_to=attempt.sought_from)
            if recognises(record) and (is_of_its_time(record, attempt) or _tells_no_time(record, attempt))
        ]

    return unclaimed(agreed(found))


def is_of_its_time(record: TransactionRecord, attempt: Attempt) -> bool:
    """Whether the transaction is new since the attempt's watermark, and neither too old nor too new to be its own."""
    return (
        attempt.watermark_service_time is not None
        and record.created_at is not None
        and attempt.sought_from <= record.created_at <= attempt.sought_until
        and attempt.is_new_since(record.transaction_id)
    )


def _tells_no_time(record: TransactionRecord, attempt: Attempt) -> bool:
    return record.created_at is None and attempt.is_new_since(record.transaction_id)


def _mismatch(operation: Operation, attempt: Attempt, record: TransactionRecord) -> MismatchReason | None:
    """What keeps the only candidate from being taken; None if nothing does."""
    mark = attempt.watermark_service_time
    if mark is None or record.created_at is None:
        return MismatchReason.NO_TIME
    if len(record.transaction_id) > ID_LENGTH:
        return MismatchReason.ID_TOO_LONG
    if _left_what_we_saw(attempt, record):
        return MismatchReason.BALANCE_AS_BEFORE
    if record.created_at >= mark - EXACT:
        return None
    return _mismatch_of_an_older(operation, attempt, record)


def _mismatch_of_an_older(
    operation: Operation, attempt: Attempt, record: TransactionRecord
) -> MismatchReason | None:
    if operation.status == Status.UNKNOWN:
        return MismatchReason.OLDER_AND_NOT_ACCEPTED
    found_it_so = record.previous_balance is not None and record.previous_balance == attempt.watermark_balance
    if not found_it_so:
        return MismatchReason.OLDER_AND_OTHER_BALANCE
    return None


def _left_what_we_saw(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether the balance was, after this transaction, as we saw it before ours: then it was there when we looked."""
    if record.previous_balance is None:
        return False
    after = record.previous_balance - record.amount - (record.fee or 0)
    return bool(after == attempt.watermark_balance)


def _may_hide_ours(attempt: Attempt, own: list[TransactionRecord]) -> bool:
    """Whether what was taken for ours failed: perhaps it was another's, and ours stands beside it by now."""
    return attempt.named_at is None and [record.status for record in own] == ["failed"]


def _own(operation: Operation, attempt: Attempt) -> list[TransactionRecord]:
    """The transaction that is this attempt's: named by the service in its answer, or taken for ours."""
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
