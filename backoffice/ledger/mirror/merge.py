"""Merge provider records into the mirror, and mark those that left the provider's list as missing.

Rows, history of changes, day totals and breaks agree at every commit. A missing transaction stays, with the moment it
went missing, and counts in no total.
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from backoffice.core import clock, leases
from backoffice.core.fields import normalized_text
from backoffice.ledger.mirror.lease import SyncLease
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


def facet_ids(wanted: Iterable[FacetKey]) -> dict[FacetKey, int]:
    """The id of each of these facets; those that are new are made. In a transaction of the sync's own.

    Read anew each time, some hundreds of rows: what a process remembered could have been rolled back.
    """
    missing = set(wanted) - set(known := _stored_facets())
    if not missing:
        return known
    Facet.objects.bulk_create(
        [Facet(**dict(zip(FACET_COLUMNS, words, strict=True))) for words in sorted(missing)],
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
    """What a merge did. `is_known` says of each record, in the order told, whether it was here just so before."""

    new: int
    changed: int
    is_known: list[bool]


@dataclass(frozen=True)
class RecordChange:
    """A record that was here otherwise, or was missing. Nothing is `after` if only its spelling differs."""

    known: Transaction
    row: MirrorRow
    before: dict[str, Any]
    after: dict[str, Any]


def merge_records(
    records: Iterable[TransactionRecord], *, known_before: datetime | None = None
) -> MergeResult:
    """The same as `merge_rows` of the rows of these records. Raises UnfitRecordError."""
    return merge_rows(rows_of(records), known_before=known_before)


def merge_rows(told: Mapping[str, MirrorRow], *, known_before: datetime | None = None) -> MergeResult:
    """Make the mirror say of these records, by their ids, what the service told, and of the others what it said.

    In the caller's transaction; whoever else merges waits for its end. Rows that say it already are not written. A
    record that changed gets a `TransactionChange`; the totals go along. With `known_before`, what was first seen at
    that moment or later does not count as known. Whoever told them, a `COUNT` pass that is under way has seen them.
    """
    rows = list(told.values())
    leases.lock_until_commit("mirror")
    now = clock.now()
    writer = _WRITERS[connection.vendor]
    writer.note(rows)
    is_known = [True] * len(rows)
    new, known = [], {}
    for place, pk in unsettled_rows(known_before):
        is_known[place] = False
        if pk is None:
            new.append(rows[place])
        else:
            known[pk] = rows[place]
    changes = _changes(known)
    if new or changes:
        _write(writer, new, changes, now)
    if Mirror.objects.filter(pk=1, pass_depth=Mirror.Depth.COUNT).exists():
        record_sightings()
    return MergeResult(len(new), sum(1 for change in changes if change.after), is_known)


def _changes(known: Mapping[int, MirrorRow]) -> list[RecordChange]:
    """Those of the rows that differ from what stands there; what was merely seen too lately does not."""
    stored = Transaction.objects.in_bulk(list(known))
    return [
        _change(stored[pk], row)
        for pk, row in known.items()
        if bytes(stored[pk].digest) != row.digest or stored[pk].missing_since
    ]


def _change(stored: Transaction, row: MirrorRow) -> RecordChange:
    told = row.values | {"missing_since": None}
    changed = [name for name in told if getattr(stored, name) != told[name]]
    before = {name: _json_value(getattr(stored, name)) for name in changed}
    return RecordChange(stored, row, before, {name: _json_value(told[name]) for name in changed})


def _json_value(value: object) -> object:
    match value:
        case Decimal():
            return normalized_text(value)
        case datetime():
            return value.isoformat()
    return value


def _write(writer: MergeWriter, new: list[MirrorRow], changes: list[RecordChange], now: datetime) -> None:
    facets = facet_ids({row.words for row in (*new, *(change.row for change in changes))})
    # The service lists the newest first: of two of the same moment, the later one gets the higher id.
    writings = [RowWrite(row, facets[row.words], None) for row in reversed(new)]
    writings += [
        RowWrite(change.row, facets[change.row.words], now if change.after else None) for change in changes
    ]
    newest_before = Transaction.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    writer.write(writings, now)
    TransactionChange.objects.bulk_create(
        TransactionChange(transaction=change.known, seen_at=now, before=change.before, after=change.after)
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
    """Let the totals of days go along with their rows, in the transaction that writes these."""
    if sums := differences.that_differ():
        _WRITERS[connection.vendor].add(sums)


def _chain_link(row: MirrorRow, now: datetime) -> chain.ChainLink:
    """The new row as a part of the chain of balances, as `books.reading` will read it."""
    told = row.record
    adds = chain.balance_effect(row.words[3], row.amount, row.fee) if told.created_at else None
    before = None if told.previous_balance is None else as_stored(told.previous_balance)
    return chain.make_link(0, told.created_at or now, before, adds)


def _moved_moments(changes: list[RecordChange]) -> Iterator[tuple[str, datetime]]:
    """Where the chain of balances may be another one since these changed."""
    for change in changes:
        if not breaks.CHAIN_FIELDS.isdisjoint(change.after):
            yield change.known.currency, change.known.occurred_at
            yield change.row.record.currency, change.row.record.created_at or change.known.occurred_at


def _total_differences(
    facets: Mapping[FacetKey, int], new: list[MirrorRow], changes: list[RecordChange], now: datetime
) -> TotalDifferences:
    differences = TotalDifferences()
    for row in new:
        differences.at(row.record.created_at or now, facets[row.words]).add(row.amount, row.fee)
    for change in changes:
        known, row = change.known, change.row
        if not known.missing_since:  # what the service did not list was taken out of them then
            differences.at(known.occurred_at, known.facet_id).subtract(known.amount, known.fee)
        moment = row.record.created_at or known.occurred_at
        differences.at(moment, facets[row.words]).add(row.amount, row.fee)
    return differences


logger = logging.getLogger(__name__)

MAX_MISSING = 10_000
"""A list that lost more than so many is more likely broken than right: then none of them is marked."""
MARKED_PER_TRANSACTION = 200
"""So many in one transaction: whoever merges meanwhile waits a fraction of a second, wherever in the chain they are."""


def missing_count() -> int:
    """How many transactions are here that the service does not list any more."""
    return Transaction.objects.filter(missing_since__isnull=False).count()


def clear_sightings() -> None:
    """For another `COUNT` pass."""
    Sighting.objects.all().delete()


def mark_missing(lease: SyncLease, begun_at: datetime) -> None:
    """Mark what was here when the `COUNT` pass began and in no page read since, with an entry in its history.

    It is taken out of the totals, and comes back into them if the service lists it again (`merging`). Some at a time,
    each of which is a durable transaction of its own: whoever comes after one that was broken off marks the rest, since
    what was seen is remembered until the pass has ended. Raises LeaseLostError.
    """
    lost = list(_unseen_transactions(begun_at).values_list("pk", flat=True)[: MAX_MISSING + 1])
    if len(lost) > MAX_MISSING:
        logger.error("The service's list lost more than %d transactions; none of them is marked", MAX_MISSING)
        return
    for first in range(0, len(lost), MARKED_PER_TRANSACTION):
        with transaction.atomic(durable=True):
            lease.prove()
            leases.lock_until_commit("mirror")
            _mark_missing(lost[first : first + MARKED_PER_TRANSACTION])


def _mark_missing(pks: list[int]) -> None:
    """Rows, their history, totals and breaks, in the caller's transaction."""
    here = Transaction.objects.filter(pk__in=pks, missing_since__isnull=True)
    lost = list(here.only("currency", "occurred_at", "facet_id", "amount", "fee"))
    now = clock.now()
    TransactionChange.objects.bulk_create(
        TransactionChange(
            transaction=one,
            seen_at=now,
            before={"missing_since": None},
            after={"missing_since": now.isoformat()},
        )
        for one in lost
    )
    differences = TotalDifferences()
    for one in lost:
        differences.at(one.occurred_at, one.facet_id).subtract(one.amount, one.fee)
    update_totals(differences)
    here.update(missing_since=now, changed_at=now)
    breaks.update_breaks((one.currency, one.occurred_at) for one in lost)


def _unseen_transactions(begun_at: datetime) -> QuerySet[Transaction]:
    seen = Sighting.objects.filter(transaction_id=OuterRef("pk"))
    here = Transaction.objects.filter(first_seen_at__lt=begun_at, missing_since__isnull=True)
    return here.filter(~Exists(seen)).order_by("pk")
