"""Looks again at what is closed, and raises an incident when the service shows something else by now.

Nothing of an operation or an attempt is edited but the time of the next look. One reading of the list serves all
attempts of a currency that are due, so that looks fall on full minutes and hours.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backoffice.core import clock
from backoffice.ledger import selectors as ledger
from backoffice.ledger.mirrored import Transaction
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.evidence import listed_transaction, recorded_end
from backoffice.operations.kinds import MoneyKind, content_of
from backoffice.operations.models import UNMATCHED, Attempt
from backoffice.operations.oversight import IncidentKind
from backoffice.operations.services import incidents
from backoffice.operations.services.apart import for_each, tell_nobody
from backoffice.operations.services.looking import (
    NAMED_REACHES_BACK,
    SKEW,
    WINDOW,
    ListMovesError,
    agreed,
    is_of_its_time,
    unclaimed,
)
from backoffice.operations.states import Outcome
from payments_gateway import GatewayError, TransactionRecord

# When a closed attempt is looked at again, counted from its end and rounded up to full ones of the second. The look
# in the middle comes after the time in which the service may still execute what it got.
WATCH_AFTER = (
    (timedelta(minutes=10), timedelta(minutes=1)),
    (WINDOW + timedelta(minutes=5), timedelta(minutes=15)),
    (timedelta(hours=24), timedelta(hours=1)),
)
LOOK_AGAIN_AFTER = timedelta(minutes=15)  # where the list could not be read, or another attempt is in doubt
LEASE = timedelta(minutes=10)
AT_ONCE = 500


def first_watch(closed_at: datetime) -> datetime:
    """When an attempt that was closed then is looked at again for the first time."""
    return _moments(closed_at)[0]


def watch_due() -> int:
    """Look again at the closed attempts whose time has come; how many were looked at.

    May be called at any time and by several processes: each attempt is looked at by the one that wins its turn. What
    goes wrong with one stops no other; it is looked at again after the lease.
    """
    due = Attempt.objects.filter(watch_next_at__lte=clock.now(), closed_at__isnull=False)
    won = [
        attempt
        for attempt in due.select_related("operation").order_by("watch_next_at")[:AT_ONCE]
        if _take_turn(attempt)
    ]
    by_currency: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in won:
        by_currency[attempt.operation.currency if _is_listed(attempt) else ""].append(attempt)
    for attempt in by_currency.pop("", []):
        _look_next(attempt, None)  # the list shows nothing of it
    by_first = {attempts[0]: (currency, attempts) for currency, attempts in by_currency.items()}

    def watch_together(first: Attempt) -> None:
        _watch(*by_first[first])

    names = {
        first: f"Looking again at what is closed in {currency}" for first, (currency, _) in by_first.items()
    }
    for_each(watch_together, names, failed=tell_nobody)
    return len(won)


@dataclass(frozen=True)
class Reading:
    """What the list shows that can concern some attempts, and how far back it was read."""

    records: list[TransactionRecord]
    oldest: datetime | None

    def of(self, transaction_id: str | None) -> TransactionRecord | None:
        """The record of this id."""
        return next((record for record in self.records if record.transaction_id == transaction_id), None)

    def reaches(self, attempt: Attempt) -> bool:
        """Whether what happened at the time of the attempt would be in it."""
        return not attempt.watermark_transaction_id or (
            self.oldest is not None and self.oldest <= _mark(attempt)
        )


def _watch(currency: str, attempts: Sequence[Attempt]) -> None:
    now = clock.now()
    try:
        reading = _read(currency, attempts)
    except (GatewayError, ListMovesError):
        for attempt in attempts:
            _look_next(attempt, now + LOOK_AGAIN_AFTER)
        return
    others = _in_doubt(currency)

    def look_again(attempt: Attempt) -> None:
        found = _lookalikes(attempt, reading)
        unclear = [record for record in found if any(_may_be(other, record) for other in others)]
        clear = [record for record in found if record not in unclear]
        for kind, record in _news(attempt, reading, clear):
            incidents.report(attempt.operation, kind=kind, evidence=evidence(attempt, record))
        later = now + LOOK_AGAIN_AFTER if unclear else _next_watch(attempt, now)
        _look_next(attempt, later)

    names = {attempt: attempt.operation.reference for attempt in attempts}
    for_each(look_again, names, failed=tell_nobody)


def _news(
    attempt: Attempt, reading: Reading, lookalikes: list[TransactionRecord]
) -> Iterator[tuple[IncidentKind, TransactionRecord | None]]:
    """Everything in the list that contradicts the end on record."""
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


def _read(currency: str, attempts: Sequence[Attempt]) -> Reading:
    """The list back to the oldest of these attempts, or further where one's transaction is not found there.

    Raises GatewayError, ListMovesError.
    """
    named = {attempt.service_transaction_id for attempt in attempts} - {None}
    reading = _read_back(currency, min(map(_mark, attempts)) - SKEW, attempts)
    missing = named - {record.transaction_id for record in reading.records}
    if missing:
        reading = _read_back(currency, min(map(_mark, attempts)) - NAMED_REACHES_BACK, attempts)
    return reading


def _read_back(currency: str, back_to: datetime, attempts: Sequence[Attempt]) -> Reading:
    amounts = {attempt.operation.amount for attempt in attempts}
    named = {attempt.service_transaction_id for attempt in attempts}
    times: list[datetime] = []

    def concerning() -> list[TransactionRecord]:
        records = list(ledger.recent_transactions(currency, back_to=back_to))
        times.extend(record.created_at for record in records if record.created_at is not None)
        return [record for record in records if record.transaction_id in named or record.amount in amounts]

    return Reading(agreed(concerning), min(times, default=None))


def _lookalikes(attempt: Attempt, reading: Reading) -> list[TransactionRecord]:
    """Transactions of the attempt's time that are this operation by content, and no attempt's own."""
    return unclaimed([record for record in reading.records if _may_be(attempt, record)])


def _in_doubt(currency: str) -> list[Attempt]:
    """Attempts of which nobody knows yet which transaction is theirs: what looks like theirs may well be it."""
    return list(Attempt.objects.filter(UNMATCHED, operation__currency=currency).select_related("operation"))


def _may_be(attempt: Attempt, record: TransactionRecord) -> bool:
    try:
        kind, payload = content_of(attempt.operation)
    except UnreadableContentError:
        return False
    return (
        isinstance(kind, MoneyKind) and kind.recognises(payload, record) and is_of_its_time(record, attempt)
    )


def _is_listed(attempt: Attempt) -> bool:
    """Whether the service's list can show it at all."""
    try:
        kind, _ = content_of(attempt.operation)
    except UnreadableContentError:
        return attempt.service_transaction_id is not None
    return isinstance(kind, MoneyKind)


def evidence(attempt: Attempt, record: TransactionRecord | Transaction | None) -> dict[str, object]:
    """The end on record beside what the list shows, None for nothing: the same values whoever finds it."""
    on_record = recorded_end(attempt.number, attempt.outcome, attempt.service_transaction_id)
    if record is None:
        return {"on_record": on_record, "in_list": None}
    in_list = listed_transaction(
        record.transaction_id, record.created_at, record.currency, record.amount, record.status
    )
    return {"on_record": on_record, "in_list": in_list}


def _mark(attempt: Attempt) -> datetime:
    return attempt.watermark_service_time or attempt.started_at


def _moments(closed_at: datetime) -> list[datetime]:
    return [_rounded_up(closed_at + after, to) for after, to in WATCH_AFTER]


def _rounded_up(moment: datetime, to: timedelta) -> datetime:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + -(-(moment - midnight) // to) * to


def _next_watch(attempt: Attempt, now: datetime) -> datetime | None:
    closed_at = attempt.closed_at or now
    return next((moment for moment in _moments(closed_at) if moment > now), None)


def _take_turn(attempt: Attempt) -> bool:
    """Win the right to look now, by compare-and-set; a process that dies leaves it to another after the lease."""
    leased_until = clock.now() + LEASE
    won = Attempt.objects.filter(pk=attempt.pk, watch_next_at=attempt.watch_next_at).update(
        watch_next_at=leased_until
    )
    attempt.watch_next_at = leased_until
    return won == 1


def _look_next(attempt: Attempt, at: datetime | None) -> None:
    Attempt.objects.filter(pk=attempt.pk, watch_next_at=attempt.watch_next_at).update(watch_next_at=at)
