"""Look-alikes: transactions at the provider that match an operation which was not sent from here.

They stop a second payment where our own records cannot: after the database was restored or a standby promoted,
or when the same was paid outside Countersign. The check runs before every claim. Nothing is sent until a person
has declared, with a reason, that the transaction found is another payment.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.db import transaction

from backoffice.audit.canonical import storable_text
from backoffice.core import clock
from backoffice.ledger.mirror.rows import direction
from backoffice.ledger.mirror.state import synced_until
from backoffice.ledger.models import Transaction
from backoffice.ledger.provider_list import Watermark, clock_lag
from backoffice.operations.delivery.release import withdraw_release
from backoffice.operations.errors import LookAlikeError, PossiblyExecutedError
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.lifecycle import incidents
from backoffice.operations.matching import exclude_claimed, find_candidates
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.states import Status
from payments_gateway import TransactionRecord


class FoundLookAlikesError(LookAlikeError):
    """Transactions that look like the operation and that its release does not declare as other payments."""

    def __init__(self, records: list[TransactionRecord]) -> None:
        super().__init__(_storable_id(record) for record in records)
        self.records = records


def read_list_from(operation: Operation) -> datetime:
    """From when the provider's own list has to be read; older transactions are in the mirror."""
    prepared = operation.prepared_at
    return max(prepared, synced_until() or prepared) - Attempt.CLOCK_SKEW


def check_none_new(release: Release, kind: MoneyKind[Any], payload: Any, watermark: Watermark) -> None:
    """Raise FoundLookAlikesError if a transaction since the preparation matches the operation.

    Transactions of other operations, declared ones, failed and incoming ones do not count. `watermark.recent` has the
    provider's list since `read_list_from`. A record without a time counts, unless the mirror had it before.
    """
    operation = release.operation
    since = operation.prepared_at - Attempt.CLOCK_SKEW - clock_lag(watermark.provider_time)
    known = {record.transaction_id: record for record in _mirrored(operation, since)}
    listed = {record.transaction_id: record for record in watermark.recent}
    found = [
        record
        for record in (known | listed).values()
        if (record.created_at is None or record.created_at >= since)
        and record.status != "failed"
        and direction(record) != "in"
        and _storable_id(record) not in release.look_alikes
        and kind.is_match(payload, record)
    ]
    new = exclude_claimed(_without_old_untimed(found, since), but_by=operation)
    if new:
        raise FoundLookAlikesError(new)


def check_not_executed(
    release: Release,
    first: Attempt,
    matches: Callable[[TransactionRecord], bool],
    check_time: Callable[[], None],
) -> None:
    """Raise the reason if the list shows what an earlier attempt may have caused and no person declared otherwise.

    While the operation is approved, that attempt was proven not executed: an incident, and FoundLookAlikesError, so
    that people compare the records. Otherwise another process has sent the operation meanwhile, and the transaction
    may be that of its attempt: PossiblyExecutedError, as for what an attempt of this operation has claimed.
    """
    operation = release.operation
    found = [
        record
        for record in find_candidates(operation, first, matches, before_request=check_time, with_own=True)
        if _storable_id(record) not in release.look_alikes
    ]
    if not found:
        return
    ids = [record.transaction_id for record in found]
    is_approved = Operation.objects.filter(pk=operation.pk, status=Status.APPROVED).exists()
    if is_approved:
        incidents.raise_incident(
            operation,
            kind=IncidentKind.EXECUTED_DESPITE_PROOF,
            evidence={"transactions": ids, "attempt": first.number, "responses": first.responses},
        )
    if is_approved and not operation.attempts.filter(provider_transaction_id__in=ids).exists():
        raise FoundLookAlikesError(found)
    raise PossiblyExecutedError(", ".join(ids))


def _mirrored(operation: Operation, since: datetime) -> Iterator[TransactionRecord]:
    """Also those that the provider does not list any more: a list that is incomplete for a time hides no payment."""
    rows = Transaction.objects.filter(
        currency=operation.currency, amount=operation.amount, occurred_at__gte=since
    )
    return (row.as_record() for row in rows)


def _without_old_untimed(records: list[TransactionRecord], since: datetime) -> list[TransactionRecord]:
    """Without the records that have no time and that the mirror first saw before this moment."""
    untimed = [record.transaction_id for record in records if record.created_at is None]
    if not untimed:
        return records
    rows = Transaction.objects.filter(transaction_id__in=untimed, occurred_at__lt=since)
    old = set(rows.values_list("transaction_id", flat=True))
    return [record for record in records if record.transaction_id not in old]


@transaction.atomic
def stop_release(release: Release, found: FoundLookAlikesError) -> None:
    """End this release and keep the records, so that the operation's page shows them beside its content."""
    if withdraw_release(release, found):
        look_alikes = [_look_alike(release.operation, record) for record in found.records]
        LookAlike.objects.bulk_create(look_alikes, ignore_conflicts=True)


def _look_alike(operation: Operation, record: TransactionRecord) -> LookAlike:
    reported = record.model_dump(mode="json", by_alias=True)
    texts = {name: storable_text(value) for name, value in reported.items() if isinstance(value, str)}
    return LookAlike(
        operation=operation,
        transaction_id=_storable_id(record),
        record=reported | texts,
        found_at=clock.now(),
    )


def _storable_id(record: TransactionRecord) -> str:
    return storable_text(record.transaction_id)
