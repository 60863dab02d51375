"""Match an attempt to its transaction in the provider's list, and claim it. Matching is read-only;
`outcome.confirmation` acts on the result.

An attempt the provider answered with a transaction id is matched by that id. Otherwise a transaction is a candidate
when

* its id was not in the list we read just before sending (the watermark),
* its type, currency and amount (and recipient, where reported) match the operation,
* its time lies within the attempt's search window, and
* no other attempt has claimed it (one transaction belongs to at most one attempt: a unique index).

A single candidate is still rejected when the balance after it equals the balance we saw before sending, when it is
older than the watermark and the provider did not accept our request, or when it has no time. Several candidates are
never resolved automatically: people decide.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet

from backoffice.audit.canonical import storable_text
from backoffice.core import clock
from backoffice.core.gateway import gateway
from backoffice.ledger.transactions import provider_list
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.base import ChangeKind, MoneyKind
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation
from backoffice.operations.models.reason_codes import CheckResult, MismatchReason
from backoffice.operations.states import Status
from payments_gateway import GatewayError, TransactionRecord

EXECUTION_WINDOW, CLOCK_SKEW = Attempt.MAY_TAKE, Attempt.SKEW
TIME_TOLERANCE = timedelta(seconds=5)  # so much earlier than the mark is not yet before it
NAMED_SEARCH_WINDOW = timedelta(
    days=1
)  # how much older than our watermark a transaction that was named may claim to be
MAX_PASSES = 4  # how often a list that changes meanwhile is read


class UnstableListError(Exception):
    """No two passes through the service's list agreed, so nothing can be said of it now."""


_PROBLEMS: dict[type[Exception], CheckResult] = {
    UnreadableContentError: CheckResult.CONTENT_UNREADABLE,
    UnstableListError: CheckResult.LIST_CHANGING,
}


@dataclass(frozen=True)
class MatchResult:
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
            return self.problem, {"error": storable_text(self.error)[:250]} if self.error else {}
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


def find_match(operation: Operation, attempt: Attempt) -> MatchResult:
    """Ask the service what became of this attempt. Never raises for what the service or the content does."""
    now = clock.now()
    try:
        own = _claimed_records(operation, attempt) if attempt.service_transaction_id else []
        if attempt.service_transaction_id and not _may_be_wrongly_claimed(attempt, own):
            return MatchResult(now, own)
        kind, payload = read_content(operation)
        if isinstance(kind, MoneyKind):
            found = own + find_candidates(operation, attempt, partial(kind.recognises, payload))
            is_new = len(found) == 1 and not own
            rejected = _mismatch(operation, attempt, found[0]) if is_new else None
            return MatchResult(now, found, rejected_because=rejected)
        if isinstance(kind, ChangeKind):
            is_done = kind.is_done(gateway(), payload)
            return MatchResult(now, is_done=is_done, is_nowhere=is_done is None)
        return MatchResult(now, is_nowhere=True)  # of our own: it was never sent
    except GatewayError as exc:
        return MatchResult(now, problem=CheckResult.PROVIDER_UNREADABLE, error=str(exc))
    except (UnreadableContentError, UnstableListError) as exc:
        return MatchResult(now, problem=_PROBLEMS[type(exc)])


def find_candidates(
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
            for record in provider_list.recent_transactions(operation.currency, back_to=attempt.sought_from)
            if recognises(record)
            and (is_in_search_window(record, attempt) or _is_new_without_time(record, attempt))
        ]

    return exclude_claimed(read_until_stable(found))


def is_in_search_window(record: TransactionRecord, attempt: Attempt) -> bool:
    """Whether the transaction is new since the attempt's watermark, and neither too old nor too new to be its own."""
    return (
        attempt.watermark_service_time is not None
        and record.created_at is not None
        and attempt.sought_from <= record.created_at <= attempt.sought_until
        and attempt.is_new_since(record.transaction_id)
    )


def _is_new_without_time(record: TransactionRecord, attempt: Attempt) -> bool:
    return record.created_at is None and attempt.is_new_since(record.transaction_id)


def _mismatch(operation: Operation, attempt: Attempt, record: TransactionRecord) -> MismatchReason | None:
    """What keeps the only candidate from being taken; None if nothing does."""
    mark = attempt.watermark_service_time
    if mark is None or record.created_at is None:
        return MismatchReason.NO_TIME
    if len(record.transaction_id) > TRANSACTION_ID_LENGTH:
        return MismatchReason.ID_TOO_LONG
    if _preceded_watermark(attempt, record):
        return MismatchReason.BALANCE_AS_BEFORE
    if record.created_at >= mark - TIME_TOLERANCE:
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


def _preceded_watermark(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether the balance was, after this transaction, as we saw it before ours: then it was there when we looked."""
    if record.previous_balance is None:
        return False
    after = record.previous_balance - record.amount - (record.fee or 0)
    return bool(after == attempt.watermark_balance)


def _may_be_wrongly_claimed(attempt: Attempt, own: list[TransactionRecord]) -> bool:
    """Whether what was taken for ours failed: perhaps it was another's, and ours stands beside it by now."""
    return attempt.named_at is None and [record.status for record in own] == ["failed"]


def _claimed_records(operation: Operation, attempt: Attempt) -> list[TransactionRecord]:
    """The transaction that is this attempt's: named by the service in its answer, or taken for ours."""
    back_to = (attempt.watermark_service_time or attempt.started_at) - NAMED_SEARCH_WINDOW
    records = provider_list.recent_transactions(operation.currency, back_to=back_to)
    return [record for record in records if record.transaction_id == attempt.service_transaction_id]


def read_until_stable(read: Callable[[], list[TransactionRecord]]) -> list[TransactionRecord]:
    """What two passes in a row showed alike. Raises ListMovesError."""
    seen = read()
    for _ in range(MAX_PASSES - 1):
        again = read()
        if _statuses_by_id(again) == _statuses_by_id(seen):
            return again
        seen = again
    raise UnstableListError("The service's list changed each time it was read")


def _statuses_by_id(records: list[TransactionRecord]) -> dict[str, str]:
    return {record.transaction_id: record.status for record in records}


def exclude_claimed(records: list[TransactionRecord]) -> list[TransactionRecord]:
    """Those that are no attempt's own."""
    claimed = set(
        Attempt.objects.filter(
            service_transaction_id__in=[record.transaction_id for record in records]
        ).values_list("service_transaction_id", flat=True)
    )
    return [record for record in records if record.transaction_id not in claimed]


def claim_transaction(
    attempt: Attempt, transaction_id: str, *, named_at: datetime | None = None, instead_of: str | None = None
) -> bool:
    """Make a transaction of the service this attempt's own. The unique index and a compare-and-set decide.

    `named_at` is when the service named it in an answer; without it, it is taken for ours by what the list shows, or
    by what people signed: they may choose it `instead_of` one that was taken. False if it is another attempt's, or
    this one has another by now.
    """
    free = Q(service_transaction_id__isnull=True) | Q(service_transaction_id__in=[transaction_id, instead_of])
    return claim_transaction_where(
        attempt, Attempt.objects.filter(free, pk=attempt.pk), transaction_id, named_at
    )


def claim_transaction_where(
    attempt: Attempt, where: QuerySet[Attempt], transaction_id: str, named_at: datetime | None
) -> bool:
    try:
        with transaction.atomic():
            bound = where.update(service_transaction_id=transaction_id, named_at=named_at or F("named_at"))
    except IntegrityError:
        if not Attempt.objects.filter(service_transaction_id=transaction_id).exclude(pk=attempt.pk).exists():
            raise
        return False
    if bound:
        attempt.service_transaction_id = transaction_id
        attempt.named_at = named_at or attempt.named_at
    return bool(bound)
