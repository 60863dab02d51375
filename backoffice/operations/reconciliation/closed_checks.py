"""Check closed attempts again at the provider, and raise an incident when it contradicts the record.

Changes nothing but the time of the next check. One read of the list serves all due attempts of a currency. To
be replaced by reconciliation over the mirror.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backoffice.core import clock
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.ledger.models import Transaction
from backoffice.ledger.provider_list import UnstableListError, stable_transactions
from backoffice.operations.delivery.record import recheck_times
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.lifecycle import incidents
from backoffice.operations.matching import (
    CLOCK_SKEW,
    NAMED_SEARCH_WINDOW,
    exclude_claimed,
    is_in_search_window,
)
from backoffice.operations.models.operations import UNMATCHED, Attempt
from backoffice.operations.models.reason_codes import IncidentKind, listed_transaction, recorded_end
from backoffice.operations.states import Outcome
from payments_gateway import GatewayError, TransactionRecord

# the list could not be read, or the transaction may belong to an attempt without one
RETRY_AFTER = timedelta(minutes=15)
LEASE = timedelta(minutes=10)
AT_ONCE = 500


def recheck_closed_due() -> int:
    """Check the closed attempts that are due again; returns how many were leased.

    May be called at any time by several processes: each attempt is checked by the process that leases it. A
    failure of one does not affect the others; it is checked again after the lease.
    """
    due = Attempt.objects.filter(watch_next_at__lte=clock.now(), closed_at__isnull=False)
    won = [
        attempt
        for attempt in due.select_related("operation").order_by("watch_next_at")[:AT_ONCE]
        if _lease_recheck(attempt)
    ]
    by_currency: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in won:
        by_currency[attempt.operation.currency if _is_listed(attempt) else ""].append(attempt)
    for attempt in by_currency.pop("", []):
        _schedule_recheck(attempt, None)  # the list does not show this kind
    by_first = {attempts[0]: (currency, attempts) for currency, attempts in by_currency.items()}

    def watch_together(first: Attempt) -> None:
        _recheck_together(*by_first[first])

    names = {
        first: f"Looking again at what is closed in {currency}" for first, (currency, _) in by_first.items()
    }
    run_each_isolated(watch_together, names, failed=ignore)
    return len(won)


@dataclass(frozen=True)
class ListReading:
    """The records of one read of the list that may concern some attempts, and the oldest time read."""

    records: list[TransactionRecord]
    oldest: datetime | None

    def of(self, transaction_id: str | None) -> TransactionRecord | None:
        return next((record for record in self.records if record.transaction_id == transaction_id), None)

    def reaches(self, attempt: Attempt) -> bool:
        """Whether the read goes back far enough to include the attempt's transaction."""
        return not attempt.watermark_transaction_id or (
            self.oldest is not None and self.oldest <= _watermark_time(attempt)
        )


def _recheck_together(currency: str, attempts: Sequence[Attempt]) -> None:
    now = clock.now()
    try:
        reading = _read(currency, attempts)
    except (GatewayError, UnstableListError):
        for attempt in attempts:
            _schedule_recheck(attempt, now + RETRY_AFTER)
        return
    others = _attempts_without_transaction(currency)

    def look_again(attempt: Attempt) -> None:
        found = _lookalikes(attempt, reading)
        unclear = [record for record in found if any(_may_be(other, record) for other in others)]
        clear = [record for record in found if record not in unclear]
        for kind, record in _contradictions(attempt, reading, clear):
            incidents.raise_incident(attempt.operation, kind=kind, evidence=list_evidence(attempt, record))
        later = now + RETRY_AFTER if unclear else _next_recheck(attempt, now)
        _schedule_recheck(attempt, later)

    names = {attempt: attempt.operation.reference for attempt in attempts}
    run_each_isolated(look_again, names, failed=ignore)


def _contradictions(
    attempt: Attempt, reading: ListReading, lookalikes: list[TransactionRecord]
) -> Iterator[tuple[IncidentKind, TransactionRecord | None]]:
    """Every record in the list that contradicts the recorded outcome."""
    own = reading.of(attempt.service_transaction_id)
    debits = [record for record in lookalikes if record.status != "failed"]
    if attempt.outcome == Outcome.SUCCEEDED:
        if own is not None and own.status == "failed":
            yield IncidentKind.NOW_FAILED, own
        if attempt.service_transaction_id and own is None and reading.reaches(attempt):
            yield IncidentKind.NOT_LISTED, None
        if attempt.service_transaction_id:
            yield from ((IncidentKind.SECOND_DEBIT, debit) for debit in debits)
        return
    if own is not None and own.status == "fulfilled":
        yield IncidentKind.NOW_EXECUTED, own
    yield from ((IncidentKind.EXECUTED_AFTER_ALL, debit) for debit in debits)


def _read(currency: str, attempts: Sequence[Attempt]) -> ListReading:
    """The list back to the oldest of these attempts, or further back if a named transaction is not found.

    Raises GatewayError, UnstableListError.
    """
    named = {attempt.service_transaction_id for attempt in attempts} - {None}
    reading = _read_back(currency, min(map(_watermark_time, attempts)) - CLOCK_SKEW, attempts)
    missing = named - {record.transaction_id for record in reading.records}
    if missing:
        reading = _read_back(currency, min(map(_watermark_time, attempts)) - NAMED_SEARCH_WINDOW, attempts)
    return reading


def _read_back(currency: str, back_to: datetime, attempts: Sequence[Attempt]) -> ListReading:
    amounts = {attempt.operation.amount for attempt in attempts}
    named = {attempt.service_transaction_id for attempt in attempts}
    times: list[datetime] = []

    def concerns_us(record: TransactionRecord) -> bool:
        if record.created_at is not None:
            times.append(record.created_at)
        return record.transaction_id in named or record.amount in amounts

    return ListReading(
        stable_transactions(currency, back_to=back_to, only=concerns_us), min(times, default=None)
    )


def _lookalikes(attempt: Attempt, reading: ListReading) -> list[TransactionRecord]:
    """Unclaimed transactions in the attempt's search window that match the operation by content."""
    return exclude_claimed([record for record in reading.records if _may_be(attempt, record)])


def _attempts_without_transaction(currency: str) -> list[Attempt]:
    """Open attempts whose transaction is not known: a matching record may be theirs."""
    return list(Attempt.objects.filter(UNMATCHED, operation__currency=currency).select_related("operation"))


def _may_be(attempt: Attempt, record: TransactionRecord) -> bool:
    try:
        kind, payload = read_content(attempt.operation)
    except UnreadableContentError:
        return False
    return (
        isinstance(kind, MoneyKind)
        and kind.recognises(payload, record)
        and is_in_search_window(record, attempt)
    )


def _is_listed(attempt: Attempt) -> bool:
    """Whether the provider's list can show this attempt at all."""
    try:
        kind, _ = read_content(attempt.operation)
    except UnreadableContentError:
        return attempt.service_transaction_id is not None
    return isinstance(kind, MoneyKind)


def list_evidence(attempt: Attempt, record: TransactionRecord | Transaction | None) -> dict[str, object]:
    """The recorded outcome and what the list shows, equal for every caller so that it is stored once."""
    on_record = recorded_end(attempt.number, attempt.outcome, attempt.service_transaction_id)
    if record is None:
        return {"on_record": on_record, "in_list": None}
    in_list = listed_transaction(
        record.transaction_id, record.created_at, record.currency, record.amount, record.status
    )
    return {"on_record": on_record, "in_list": in_list}


def _watermark_time(attempt: Attempt) -> datetime:
    return attempt.watermark_service_time or attempt.started_at


def _next_recheck(attempt: Attempt, now: datetime) -> datetime | None:
    closed_at = attempt.closed_at or now
    return next((moment for moment in recheck_times(closed_at) if moment > now), None)


def _lease_recheck(attempt: Attempt) -> bool:
    """Lease the check by compare-and-set; if the process dies, another checks after the lease."""
    leased_until = clock.now() + LEASE
    won = Attempt.objects.filter(pk=attempt.pk, watch_next_at=attempt.watch_next_at).update(
        watch_next_at=leased_until
    )
    attempt.watch_next_at = leased_until
    return won == 1


def _schedule_recheck(attempt: Attempt, at: datetime | None) -> None:
    Attempt.objects.filter(pk=attempt.pk, watch_next_at=attempt.watch_next_at).update(watch_next_at=at)
