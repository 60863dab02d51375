"""Match an attempt to its transaction in the provider's list, and claim it.

Matching is read-only; `outcome.confirmation` acts on the result. An attempt whose
response contained a transaction id is matched by that id. Otherwise a transaction is a candidate when

* its id was not in the list we read just before sending (the watermark),
* its type, currency and amount (and recipient, where reported) match the operation,
* its time lies within the attempt's search window, and
* no other attempt has claimed it (one transaction belongs to at most one attempt: a unique index).

A single candidate is still rejected when the balance after it equals the balance we saw before sending, when
it is older than the watermark and the provider did not accept our request, when it has no time, or when its recipient
is merely similar. A few seconds older counts as newer; if another attempt of the balance was open meanwhile, only
where the balance before it is the one we saw before sending. Several candidates are never resolved automatically:
people decide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from backoffice.audit.canonical import storable_text
from backoffice.core import clock
from backoffice.core.gateway import gateway
from backoffice.core.web.formatting import stored_error
from backoffice.ledger.models import Transaction
from backoffice.ledger.provider_list import ListReading, UnstableListError
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import ChangeKind, MoneyKind
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation
from backoffice.operations.models.reason_codes import CheckResult, MismatchReason
from backoffice.operations.states import Status
from payments_gateway import GatewayError, TransactionRecord

# A transaction this much older than the watermark still counts as newer; beside another attempt only by its balance.
TIME_TOLERANCE = timedelta(seconds=5)
# More than the provider's list may be read before a claim (`send.PREFLIGHT_SECONDS`), with what was read in advance.
LONGEST_READING = timedelta(minutes=2)


_PROBLEMS: dict[type[Exception], CheckResult] = {
    ContentUnreadableError: CheckResult.CONTENT_UNREADABLE,
    UnstableListError: CheckResult.LIST_CHANGING,
}


@dataclass(frozen=True)
class MatchResult:
    """The result of one status check: the candidates found, or why the provider could not be read."""

    checked_at: datetime
    candidates: list[TransactionRecord] = field(default_factory=list)
    problem: CheckResult | None = None  # why it could not be read
    error: dict[str, str] = field(default_factory=dict)  # the client's error, see `stored_error`
    mismatch_reason: MismatchReason | None = None  # why a single candidate is not accepted
    # For kinds without a transaction: whether another read shows the change as done.
    confirmed_done: bool | None = None

    is_unobservable: bool = False  # no read of the provider shows the outcome

    @property
    def result(self) -> tuple[CheckResult, dict[str, Any]]:
        """The code and parameters that are stored with the attempt."""
        if self.is_unobservable:
            return CheckResult.NOT_OBSERVABLE, {}
        if self.problem:
            return self.problem, {name: storable_text(text)[:250] for name, text in self.error.items()}
        if self.confirmed_done is not None:
            return CheckResult.DONE if self.confirmed_done else CheckResult.NOT_DONE, {}
        return self._candidates_result()

    def _candidates_result(self) -> tuple[CheckResult, dict[str, Any]]:
        if not self.candidates:
            return CheckResult.NOT_LISTED, {}
        if len(self.candidates) > 1:
            return CheckResult.SEVERAL_CANDIDATES, {"count": len(self.candidates)}
        only = self.candidates[0]
        if self.mismatch_reason:
            reason = self.mismatch_reason.value
            return CheckResult.CANDIDATE_REJECTED, {"transaction": only.transaction_id, "reason": reason}
        return CheckResult.FOUND, {"transaction": only.transaction_id, "status": only.status}


def list_reading(currency: str, attempts: Sequence[Attempt]) -> ListReading:
    """One reading of the provider's list for the checks of all these attempts, which are of this currency."""
    starts = [
        attempt.received_id_search_from if attempt.provider_transaction_id else attempt.search_from
        for attempt in attempts
    ]
    return ListReading(currency, back_to=min(starts))


def find_match(operation: Operation, attempt: Attempt, reading: ListReading | None = None) -> MatchResult:
    """Check this attempt at the provider, or in a reading of its list that began after the attempt was due.

    Errors of the provider or the content are returned, not raised.
    """
    now = reading.began_at if reading else clock.now()
    try:
        own = _claimed_records(operation, attempt, reading) if attempt.provider_transaction_id else []
        if attempt.provider_transaction_id and not _may_be_wrongly_claimed(attempt, own):
            return MatchResult(now, own)
        kind, payload = read_content(operation)
        if isinstance(kind, MoneyKind):
            found = own + find_candidates(operation, attempt, partial(kind.is_match, payload), reading)
            is_new = len(found) == 1 and not own
            mismatch = _mismatch(operation, attempt, found[0]) if is_new else None
            if is_new and mismatch is None and kind.is_similar_only(payload, found[0]):
                mismatch = MismatchReason.RECEIVER_IN_OTHER_CASE
            return MatchResult(now, found, mismatch_reason=mismatch)
        if isinstance(kind, ChangeKind):
            is_done = kind.is_done(gateway(), payload)
            return MatchResult(now, confirmed_done=is_done, is_unobservable=is_done is None)
        return MatchResult(now, is_unobservable=True)  # a local kind: never sent
    except GatewayError as exc:
        return MatchResult(now, problem=CheckResult.PROVIDER_UNREADABLE, error=stored_error(exc, limit=250))
    except (ContentUnreadableError, UnstableListError) as exc:
        return MatchResult(now, problem=_PROBLEMS[type(exc)])


def find_candidates(
    operation: Operation,
    attempt: Attempt,
    matches: Callable[[TransactionRecord], bool],
    reading: ListReading | None = None,
    *,
    before_request: Callable[[], object] | None = None,
    with_own: bool = False,
) -> list[TransactionRecord]:
    """Transactions that match the attempt by content, id and time, and that no attempt has claimed.

    Those that attempts of the same operation have claimed are found too if `with_own`. The list is read until two
    passes agree. Raises GatewayError, UnstableListError, and what `before_request` raises.
    """
    if attempt.watermark_provider_time is None:
        return []  # without the provider's time, new and old transactions cannot be distinguished

    def is_candidate(record: TransactionRecord) -> bool:
        return matches(record) and (
            is_in_search_window(record, attempt) or _is_new_without_time(record, attempt)
        )

    reading = reading or ListReading(
        operation.currency, back_to=attempt.search_from, before_request=before_request
    )
    return exclude_claimed(reading.stable(is_candidate), but_by=operation if with_own else None)


def is_in_search_window(record: TransactionRecord, attempt: Attempt) -> bool:
    """Whether the transaction is new since the attempt's watermark and lies in its search window."""
    return (
        attempt.watermark_provider_time is not None
        and record.created_at is not None
        and attempt.search_from <= record.created_at <= attempt.search_until
        and attempt.is_after_watermark(record.transaction_id)
    )


def _is_new_without_time(record: TransactionRecord, attempt: Attempt) -> bool:
    return record.created_at is None and attempt.is_after_watermark(record.transaction_id)


def _mismatch(operation: Operation, attempt: Attempt, record: TransactionRecord) -> MismatchReason | None:
    """Why the only candidate is rejected; None if it is accepted."""
    watermark_time = attempt.watermark_provider_time
    if watermark_time is None or record.created_at is None:
        return MismatchReason.NO_TIME
    if len(record.transaction_id) > TRANSACTION_ID_LENGTH:
        return MismatchReason.ID_TOO_LONG
    if _preceded_watermark(attempt, record):
        return MismatchReason.BALANCE_AS_BEFORE
    if record.created_at >= watermark_time:
        return None
    if record.created_at >= watermark_time - TIME_TOLERANCE and (
        is_next_after_watermark(attempt, record) or not _was_sent_beside_another(attempt)
    ):
        return None
    return _mismatch_of_an_older(operation, attempt, record)


def is_next_after_watermark(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether the balance before this transaction is reported, and is the one that we saw before sending."""
    return record.previous_balance is not None and record.previous_balance == attempt.watermark_balance


def _was_sent_beside_another(attempt: Attempt) -> bool:
    """Whether another attempt of the balance was open when this one began, and could still be executed.

    Then the balance may have changed between a similar transaction and our watermark, so that `_preceded_watermark`
    does not show that one as older. Only its time can, or the balance before it. A watermark without a balance may be
    from a reading during the request before (`send.SendingRun.read_beside`), whose attempt was closed since.
    """
    sent_at = attempt.watermark_provider_time
    if sent_at is None:
        return True
    earliest = sent_at - Attempt.EXECUTION_WINDOW - 2 * Attempt.CLOCK_SKEW
    others = Attempt.objects.filter(
        balance=attempt.balance, pk__lt=attempt.pk, watermark_provider_time__range=(earliest, sent_at)
    )
    longest_ago = timedelta() if attempt.watermark_balance is not None else LONGEST_READING
    is_open = Q(closed_at__isnull=True) | Q(closed_at__gt=attempt.started_at - longest_ago)
    return others.filter(is_open).exists()


def _mismatch_of_an_older(
    operation: Operation, attempt: Attempt, record: TransactionRecord
) -> MismatchReason | None:
    if operation.status == Status.UNKNOWN:
        return MismatchReason.OLDER_AND_NOT_ACCEPTED
    if not is_next_after_watermark(attempt, record):
        return MismatchReason.OLDER_AND_OTHER_BALANCE
    return None


def _preceded_watermark(attempt: Attempt, record: TransactionRecord) -> bool:
    """Whether the balance after this transaction equals the watermark's, so that it precedes the attempt."""
    if record.previous_balance is None:
        return False
    after = record.previous_balance - record.amount - (record.fee or 0)
    return bool(after == attempt.watermark_balance)


def _may_be_wrongly_claimed(attempt: Attempt, own: list[TransactionRecord]) -> bool:
    """Whether the matched transaction failed: the attempt's own may be another one, listed by now."""
    return attempt.id_received_at is None and [record.status for record in own] == ["failed"]


def _claimed_records(
    operation: Operation, attempt: Attempt, reading: ListReading | None
) -> list[TransactionRecord]:
    """The record of the transaction id that a response contained or that was claimed by matching."""
    reading = reading or list_reading(operation.currency, [attempt])
    record = reading.find(attempt.provider_transaction_id or "")
    return [] if record is None else [record]


def exclude_claimed(
    records: list[TransactionRecord], *, but_by: Operation | None = None
) -> list[TransactionRecord]:
    """Those that no attempt has claimed, or none but attempts of this operation."""
    ids = [record.transaction_id for record in records]
    by_others = Attempt.objects.filter(provider_transaction_id__in=ids)
    if but_by is not None:
        by_others = by_others.exclude(operation=but_by)
    claimed = set(by_others.values_list("provider_transaction_id", flat=True))
    return [record for record in records if record.transaction_id not in claimed]


def was_listed_before(attempt: Attempt, transaction_id: str) -> bool:
    """Whether this transaction was read in the provider's list before the attempt began, so that it is not its own."""
    if not attempt.is_after_watermark(transaction_id):
        return True
    listed = Transaction.objects.filter(transaction_id=transaction_id)
    return listed.filter(first_seen_at__lt=attempt.started_at).exists()


def claim_transaction(
    attempt: Attempt,
    transaction_id: str,
    *,
    id_received_at: datetime | None = None,
    instead_of: str | None = None,
) -> bool:
    """Assign a provider's transaction to this attempt, by compare-and-set and a unique index.

    `id_received_at` is when a response contained the id; without it the transaction was matched in the list,
    or chosen in an approved resolution. A received id and a resolution may replace an earlier match
    (`instead_of`). False if another attempt has claimed it, or this attempt has another transaction by now.
    """
    free = Q(provider_transaction_id__isnull=True) | Q(
        provider_transaction_id__in=[transaction_id, instead_of]
    )
    try:
        with transaction.atomic():
            claimed = Attempt.objects.filter(free, pk=attempt.pk).update(
                provider_transaction_id=transaction_id, id_received_at=id_received_at or F("id_received_at")
            )
    except IntegrityError:
        if not Attempt.objects.filter(provider_transaction_id=transaction_id).exclude(pk=attempt.pk).exists():
            raise
        return False
    if claimed:
        attempt.provider_transaction_id = transaction_id
        attempt.id_received_at = id_received_at or attempt.id_received_at
    return bool(claimed)
