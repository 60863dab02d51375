"""The rules of reconciliation: our attempts compared with the mirror. Pure; reads nothing.

An attempt that moved money has one transaction, known by its id. It is

* matched: currency, amount, fee, outcome and (where reported) recipient agree;
* mismatched: one of them differs; after a resolution only money and outcome are compared, since people approved
  the rest;
* missing at provider: a read of the list that reaches back far enough, begun an hour after the attempt
  closed, does not show it, or the list no longer shows it;
* pending: no such read has ended yet, or it is still processing at the provider only.

A transaction that is not incoming, belongs to no attempt and is not older than the first operation here is

* pending while it may be that of an open attempt whose transaction the provider has not named;
* unrecognised otherwise, whatever its status: nobody prepared it here. That raises an incident.

A debit among them that looks like what a closed attempt sent contradicts its outcome: it is a second debit, or it
was executed after all. That raises an incident about the operation, unless the debit may be that of an open
attempt that looks the same.

Incoming transactions are not compared; they are only counted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from backoffice.core.fields import normalized_text
from backoffice.ledger.models import Mirror, Transaction
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import FieldMatch, MoneyKind
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Attempt
from backoffice.operations.models.reason_codes import Difference, DifferenceCode, MatchField, difference
from backoffice.operations.models.reconciliation import ReconciliationResult
from backoffice.operations.states import Outcome

MISSING_AFTER = timedelta(hours=1)
ONE_DAY = timedelta(days=1)
INCOMING = "in"
_COMPARED_ELSEWHERE = frozenset({MatchField.TYPE, MatchField.CURRENCY, MatchField.AMOUNT})
_OPPOSITE = {"fulfilled": "failed", "failed": "fulfilled"}


@dataclass(frozen=True)
class ComparisonResult:
    """A result, with the values that are stored beside it."""

    result: ReconciliationResult
    occurred_at: datetime
    currency: str
    amount: Decimal
    fee: Decimal | None
    differences: list[Difference] = field(default_factory=list)
    resembles: list[int] = field(default_factory=list)  # ids of closed attempts

    @property
    def day(self) -> date:
        """The UTC day to whose totals it belongs."""
        return self.occurred_at.astimezone(UTC).date()


def compare_attempt(attempt: Attempt, listed: Transaction | None, mirror: Mirror) -> ComparisonResult | None:
    """Compare an attempt with the record of its transaction id; None if it has no transaction to compare.

    `mirror` must be read before `listed`, otherwise it may claim a read that did not yet include the record.
    """
    if not _must_have_transaction(attempt):
        return None
    if listed is None:
        return _compare_unlisted(attempt, mirror)
    differences = list(_differences(attempt, listed))
    result = ReconciliationResult.MISMATCHED if differences else ReconciliationResult.MATCHED
    if not differences and _is_outcome_missing(attempt, listed):
        result = (
            ReconciliationResult.MISMATCHED
            if _is_list_read_since(attempt, mirror)
            else ReconciliationResult.PENDING
        )
        differences = [
            difference(DifferenceCode.OUTCOME, local=_provider_status(attempt), provider=listed.status)
        ]
    if listed.missing_since:
        result = ReconciliationResult.MISSING_AT_PROVIDER
        since = listed.missing_since.astimezone(UTC).isoformat(timespec="seconds")
        differences = [difference(DifferenceCode.NO_LONGER_LISTED, since=since)]
    return ComparisonResult(
        result, listed.occurred_at, listed.currency, listed.amount, listed.fee, differences
    )


def compare_transaction(
    listed: Transaction,
    begins_at: datetime | None,
    unmatched: Iterable[Attempt],
    closed: Iterable[Attempt] = (),
) -> ComparisonResult | None:
    """Compare a transaction that no attempt has claimed; None if it needs no explanation.

    `unmatched` are the open attempts whose transaction the provider has not named. Read them after the record,
    and check that no attempt has claimed the record after reading them: an attempt that claims it meanwhile
    is then in one of the two. `closed` are the closed attempts in whose search windows it may lie.
    """
    if listed.direction == INCOMING or begins_at is None:
        return None
    possible = [attempt for attempt in unmatched if _may_belong_to(attempt, listed)]
    resembled = [attempt.pk for attempt in closed if _is_further_debit(attempt, listed)]
    if resembled and any(_all_fields_match(attempt, listed) for attempt in possible):
        resembled = []
    if listed.occurred_at < begins_at and not resembled:
        return None  # by the provider's clock, which may be behind ours
    result, differences = ReconciliationResult.UNRECOGNISED, list(_unusual_details(listed))
    if possible:
        result = ReconciliationResult.PENDING
        operations = [attempt.operation.reference for attempt in possible]
        differences = [difference(DifferenceCode.MAY_BE_UNKNOWN_OPERATION, operations=operations)]
    return ComparisonResult(
        result, listed.occurred_at, listed.currency, listed.amount, listed.fee, differences, resembled
    )


def _unusual_details(listed: Transaction) -> Iterator[Difference]:
    """What is unusual about it. The status is included so that a change of it raises a further incident."""
    if not listed.direction:
        yield difference(DifferenceCode.DIRECTION_NOT_PROVIDED)
    if listed.status != "fulfilled":
        yield difference(DifferenceCode.STATUS, provider=listed.status)


def _must_have_transaction(attempt: Attempt) -> bool:
    """Whether it has a transaction, or succeeded and so must have one."""
    is_done = attempt.balance is not None and attempt.outcome == Outcome.SUCCEEDED
    return attempt.provider_transaction_id is not None or is_done


def _compare_unlisted(attempt: Attempt, mirror: Mirror) -> ComparisonResult:
    operation, is_list_read = attempt.operation, _is_list_read_since(attempt, mirror)
    result = ReconciliationResult.MISSING_AT_PROVIDER if is_list_read else ReconciliationResult.PENDING
    differences = [] if is_list_read else [difference(DifferenceCode.NOT_READ_FAR_ENOUGH)]
    amount = operation.amount or Decimal(0)
    return ComparisonResult(result, attempt.started_at, operation.currency, amount, attempt.fee, differences)


def _is_list_read_since(attempt: Attempt, mirror: Mirror) -> bool:
    """Whether the list was read back to the attempt's search window, long enough after it closed."""
    if attempt.closed_at is None or mirror.loaded_at is None or mirror.day_pass_begun_at is None:
        return False
    if mirror.day_pass_begun_at < attempt.closed_at + MISSING_AFTER:
        return False
    if attempt.search_from >= mirror.day_pass_begun_at - ONE_DAY:
        return True
    return (
        mirror.full_pass_begun_at is not None
        and mirror.full_pass_begun_at >= attempt.closed_at + MISSING_AFTER
    )


def _is_outcome_missing(attempt: Attempt, listed: Transaction) -> bool:
    """Whether the attempt is closed but the mirror shows no final status (yet)."""
    is_resolved_by_people = attempt.resolution_id is not None  # people approved what the status means
    return attempt.closed_at is not None and not is_resolved_by_people and listed.status not in _OPPOSITE


def _provider_status(attempt: Attempt) -> str:
    return "fulfilled" if attempt.outcome == Outcome.SUCCEEDED else "failed"


def _differences(attempt: Attempt, listed: Transaction) -> Iterator[Difference]:
    operation = attempt.operation
    if listed.currency != operation.currency:
        yield difference(DifferenceCode.CURRENCY, local=operation.currency, provider=listed.currency)
    elif operation.amount is not None and listed.amount != operation.amount:
        yield _numbers(DifferenceCode.AMOUNT, operation.amount, listed.amount, listed.currency)
    if attempt.fee is not None and (listed.fee or Decimal(0)) != attempt.fee:
        yield _numbers(DifferenceCode.FEE, attempt.fee, listed.fee or Decimal(0), listed.currency)
    expected = _provider_status(attempt)
    if attempt.closed_at is not None and listed.status == _OPPOSITE[expected]:
        yield difference(DifferenceCode.OUTCOME, local=expected, provider=listed.status)
    if not attempt.resolution_id:
        yield from _recipient_differences(attempt, listed)


def _recipient_differences(attempt: Attempt, listed: Transaction) -> Iterator[Difference]:
    """Differences in the recipient and other match fields; money is compared by `_differences`."""
    try:
        found = _match_fields(attempt, listed)
    except ContentUnreadableError:
        yield difference(DifferenceCode.CONTENT_UNREADABLE)
        return
    for field_match in found or ():
        if field_match.matches is False and field_match.field not in _COMPARED_ELSEWHERE:
            name = field_match.field.value
            yield difference(
                DifferenceCode.FIELD, field=name, local=field_match.local, provider=field_match.provider
            )


def _match_fields(attempt: Attempt, listed: Transaction) -> list[FieldMatch] | None:
    """The fields by which its kind matches a transaction; None if it has none. Raises ContentUnreadableError."""
    kind, payload = read_content(attempt.operation)
    return kind.match_fields(payload, listed.as_record()) if isinstance(kind, MoneyKind) else None


def _numbers(code: DifferenceCode, local: Decimal, provider: Decimal, currency: str) -> Difference:
    return difference(
        code, local=normalized_text(local), currency=currency, provider=normalized_text(provider)
    )


def _may_belong_to(attempt: Attempt, listed: Transaction) -> bool:
    return _is_in_search_window(attempt, listed) and attempt.started_at <= listed.first_seen_at


def _is_further_debit(attempt: Attempt, listed: Transaction) -> bool:
    """Whether it is a debit that looks like this closed attempt's, besides the transaction on record.

    Without the provider's time at sending, new and old transactions cannot be distinguished.
    """
    lacks_transaction = attempt.outcome == Outcome.SUCCEEDED and attempt.provider_transaction_id is None
    is_debit = listed.status != "failed" and listed.missing_since is None and listed.created_at is not None
    return (
        is_debit
        and not lacks_transaction
        and attempt.watermark_provider_time is not None
        and _is_in_search_window(attempt, listed)
        and _all_fields_match(attempt, listed)
    )


def _is_in_search_window(attempt: Attempt, listed: Transaction) -> bool:
    return (
        attempt.balance == listed.currency
        and attempt.operation.amount == listed.amount
        and attempt.search_from <= listed.occurred_at <= attempt.search_until
        and attempt.is_after_watermark(listed.transaction_id)
    )


def _all_fields_match(attempt: Attempt, listed: Transaction) -> bool:
    try:
        fields = _match_fields(attempt, listed)
    except ContentUnreadableError:
        return False
    return fields is not None and all(field_match.matches is not False for field_match in fields)
