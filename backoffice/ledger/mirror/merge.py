"""Merge provider records into the mirror, and mark transactions that are missing at the provider.

Rows, change history, day totals and balance breaks are consistent at every commit. A missing transaction is
kept, with the time since when it is missing, and counts in no total.
"""

import itertools
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from backoffice.core import clock
from backoffice.core.database.queries import batched
from backoffice.core.fields import normalized_text
from backoffice.core.leases import Lease, lock_until_commit
from backoffice.ledger.mirror.rows import FACET_COLUMNS, FacetKey, MirrorRow, as_stored, rows_of
from backoffice.ledger.mirror.totals import TotalDifferences
from backoffice.ledger.mirror.writers import (
    MergeWriter,
    PostgresqlWriter,
    RowWrite,
    SqliteWriter,
    record_sightings,
    unsettled_rows,
)
from backoffice.ledger.models import Facet, Mirror, Sighting, Transaction, TransactionChange
from backoffice.ledger.statements import breaks, chain
from payments_gateway import TransactionRecord


def facet_ids(facets: Iterable[FacetKey]) -> dict[FacetKey, int]:
    """Map each facet to its id, creating new facets. Runs in the caller's transaction.

    The few hundred rows are read each time: ids cached in the process could belong to a rolled-back
    transaction.
    """
    missing = set(facets) - set(known_facets := _stored_facets())
    if not missing:
        return known_facets
    Facet.objects.bulk_create(
        [Facet(**dict(zip(FACET_COLUMNS, key, strict=True))) for key in sorted(missing)],
        ignore_conflicts=True,
    )
    return _stored_facets()


def _stored_facets() -> dict[FacetKey, int]:
    return {
        (facet.currency, facet.type, facet.status, facet.direction): facet.pk for facet in Facet.objects.all()
    }


_WRITERS: dict[str, MergeWriter] = {"postgresql": PostgresqlWriter(), "sqlite": SqliteWriter()}


@dataclass(frozen=True)
class MergeResult:
    """Counts of a merge.

    `is_known` holds, in input order, whether each record was already stored unchanged.
    """

    new: int
    changed: int
    is_known: list[bool]


@dataclass(frozen=True)
class RecordChange:
    """A record that is stored with other values, or was missing.

    `after` is empty if only the spelling differs.
    """

    stored: Transaction
    row: MirrorRow
    before: dict[str, Any]
    after: dict[str, Any]


def merge_records(
    records: Iterable[TransactionRecord], *, known_before: datetime | None = None
) -> MergeResult:
    """Convert the records to rows and call `merge_rows`. Raises UnstorableRecordError."""
    return merge_rows(rows_of(records), known_before=known_before)


def merge_rows(rows: Mapping[str, MirrorRow], *, known_before: datetime | None = None) -> MergeResult:
    """Store these records, keyed by transaction id, as the provider reports them.

    Other rows are not touched.

    Runs in the caller's transaction and locks out other merges until it ends. Unchanged rows are not written.
    A changed record gets a `TransactionChange`, and the totals are updated. With `known_before`, a row first
    seen at or after that time does not count as known. While a `COUNT` pass is in progress, every record of
    any merge counts as seen.
    """
    incoming = list(rows.values())
    lock_until_commit("mirror")
    now = clock.now()
    writer = _WRITERS[connection.vendor]
    writer.stage(incoming)
    is_known = [True] * len(incoming)
    new, known_rows = [], {}
    for index, pk in unsettled_rows(known_before):
        is_known[index] = False
        if pk is None:
            new.append(incoming[index])
        else:
            known_rows[pk] = incoming[index]
    changes = _changes(known_rows)
    if new or changes:
        _write(writer, new, changes, now)
    if Mirror.objects.filter(pk=1, pass_depth=Mirror.Depth.COUNT).exists():
        record_sightings()
    return MergeResult(len(new), sum(1 for change in changes if change.after), is_known)


def _changes(known_rows: Mapping[int, MirrorRow]) -> list[RecordChange]:
    """The rows that differ from what is stored.

    Rows that are unsettled only because of `known_before` are not included.
    """
    stored = Transaction.objects.in_bulk(list(known_rows))
    return [
        _change(stored[pk], row)
        for pk, row in known_rows.items()
        if bytes(stored[pk].digest) != row.digest or stored[pk].missing_since
    ]


def _change(stored: Transaction, row: MirrorRow) -> RecordChange:
    reported = row.values | {"missing_since": None}
    changed = [name for name in reported if getattr(stored, name) != reported[name]]
    before = {name: _json_value(getattr(stored, name)) for name in changed}
    return RecordChange(stored, row, before, {name: _json_value(reported[name]) for name in changed})


def _json_value(value: object) -> object:
    match value:
        case Decimal():
            return normalized_text(value)
        case datetime():
            return value.isoformat()
    return value


def _write(writer: MergeWriter, new: list[MirrorRow], changes: list[RecordChange], now: datetime) -> None:
    facets = facet_ids({row.facet_key for row in (*new, *(change.row for change in changes))})
    # The provider lists the newest first: of two records of the same time, the later one gets the higher id.
    writes = [RowWrite(row, facets[row.facet_key], None) for row in reversed(new)]
    writes += [
        RowWrite(change.row, facets[change.row.facet_key], now if change.after else None)
        for change in changes
    ]
    newest_before = Transaction.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    writer.write(writes, now)
    TransactionChange.objects.bulk_create(
        TransactionChange(transaction=change.stored, seen_at=now, before=change.before, after=change.after)
        for change in changes
        if change.after
    )
    update_totals(_total_differences(facets, new, changes, now))
    arrived = ((row.record.currency, _chain_link(row, now)) for row in reversed(new))
    breaks.update_breaks(
        itertools.chain(breaks.moments_to_examine(arrived, newest_before), _moved_moments(changes))
    )
    Mirror.objects.filter(pk=1).update(rows=F("rows") + len(new))


def update_totals(differences: TotalDifferences) -> None:
    """Apply these differences to the day totals, in the transaction that writes the rows."""
    if sums := differences.nonzero():
        _WRITERS[connection.vendor].add_totals(sums)


def _chain_link(row: MirrorRow, now: datetime) -> chain.ChainLink:
    """The new row as a link of the balance chain, as `chain_reader` will read it."""
    record = row.record
    adds = chain.balance_effect(row.facet_key[3], row.amount, row.fee) if record.created_at else None
    before = None if record.previous_balance is None else as_stored(record.previous_balance)
    return chain.make_link(0, record.created_at or now, before, adds)


def _moved_moments(changes: list[RecordChange]) -> Iterator[tuple[str, datetime]]:
    """The currency and time, before and after, of every change that may affect the balance chain."""
    for change in changes:
        if not breaks.CHAIN_FIELDS.isdisjoint(change.after):
            yield change.stored.currency, change.stored.occurred_at
            yield change.row.record.currency, change.row.record.created_at or change.stored.occurred_at


def _total_differences(
    facets: Mapping[FacetKey, int], new: list[MirrorRow], changes: list[RecordChange], now: datetime
) -> TotalDifferences:
    differences = TotalDifferences()
    for row in new:
        differences.at(row.record.created_at or now, facets[row.facet_key]).add(row.amount, row.fee)
    for change in changes:
        stored, row = change.stored, change.row
        if not stored.missing_since:  # a missing row was subtracted from the totals when it was marked
            differences.at(stored.occurred_at, stored.facet_id).subtract(stored.amount, stored.fee)
        moment = row.record.created_at or stored.occurred_at
        differences.at(moment, facets[row.facet_key]).add(row.amount, row.fee)
    return differences


logger = logging.getLogger(__name__)

MAX_MISSING = 10_000
"""If more transactions are missing, the list is probably broken, so none of them is marked."""
MARKED_PER_TRANSACTION = 200
"""Rows marked in one transaction, so that a concurrent merge waits only a fraction of a second."""


def missing_count() -> int:
    """The number of mirrored transactions that are missing at the provider."""
    return Transaction.objects.filter(missing_since__isnull=False).count()


def clear_sightings() -> None:
    """Forget which rows were seen, before a new `COUNT` pass begins."""
    Sighting.objects.all().delete()


def mark_missing(lease: Lease, begun_at: datetime) -> None:
    """Mark transactions that were stored before the `COUNT` pass began and appeared in no page since.

    Each gets an entry in its history and is subtracted from the totals; a merge restores it if the provider
    lists it again. Works in durable transactions of `MARKED_PER_TRANSACTION` rows. Sightings are kept until
    the pass has ended, so an interrupted run can be repeated and marks the rest. Raises LeaseLostError.
    """
    missing = list(_unseen_transactions(begun_at).values_list("pk", flat=True)[: MAX_MISSING + 1])
    if len(missing) > MAX_MISSING:
        logger.error(
            "More than %d transactions vanished from the provider's list; none is marked as missing. Ask the provider.",
            MAX_MISSING,
        )
        return
    for some in batched(missing, MARKED_PER_TRANSACTION):
        with transaction.atomic(durable=True):
            lease.verify()
            lock_until_commit("mirror")
            _mark_missing(some)


def _mark_missing(pks: Collection[int]) -> None:
    """Update rows, history, totals and breaks, in the caller's transaction."""
    present = Transaction.objects.filter(pk__in=pks, missing_since__isnull=True)
    missing = list(present.only("currency", "occurred_at", "facet_id", "amount", "fee"))
    now = clock.now()
    TransactionChange.objects.bulk_create(
        TransactionChange(
            transaction=lost_row,
            seen_at=now,
            before={"missing_since": None},
            after={"missing_since": now.isoformat()},
        )
        for lost_row in missing
    )
    differences = TotalDifferences()
    for lost_row in missing:
        differences.at(lost_row.occurred_at, lost_row.facet_id).subtract(lost_row.amount, lost_row.fee)
    update_totals(differences)
    present.update(missing_since=now, changed_at=now)
    breaks.update_breaks((lost_row.currency, lost_row.occurred_at) for lost_row in missing)


def _unseen_transactions(begun_at: datetime) -> QuerySet[Transaction]:
    seen = Sighting.objects.filter(transaction_id=OuterRef("pk"))
    present = Transaction.objects.filter(first_seen_at__lt=begun_at, missing_since__isnull=True)
    return present.filter(~Exists(seen)).order_by("pk")
