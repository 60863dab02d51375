"""Merges records into the mirror: rows, history of changes, totals and breaks agree at every commit."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import F

from backoffice.core import clock, locks
from backoffice.core.fields import normal_text
from backoffice.ledger.books import arrivals, breaks, chain
from backoffice.ledger.mirror.facets import facet_ids
from backoffice.ledger.mirror.on_postgresql import OnPostgresql
from backoffice.ledger.mirror.on_sqlite import OnSqlite
from backoffice.ledger.mirror.rows import Row, Words, kept, rows_of
from backoffice.ledger.mirror.totals import Differences
from backoffice.ledger.mirror.writing import Writer, Writing, not_settled, note_sightings
from backoffice.ledger.mirrored import Mirror, Transaction, TransactionChange
from payments_gateway import TransactionRecord

_WRITERS: dict[str, Writer] = {"postgresql": OnPostgresql(), "sqlite": OnSqlite()}


@dataclass(frozen=True)
class Merged:
    """What a merge did. `is_known` says of each record, in the order told, whether it was here just so before."""

    new: int
    changed: int
    is_known: list[bool]


@dataclass(frozen=True)
class Change:
    """A record that was here otherwise, or was missing. Nothing is `after` if only its spelling differs."""

    known: Transaction
    row: Row
    before: dict[str, Any]
    after: dict[str, Any]


def merge(records: Iterable[TransactionRecord], *, known_before: datetime | None = None) -> Merged:
    """The same as `merge_rows` of the rows of these records. Raises UnfitRecordError."""
    return merge_rows(rows_of(records), known_before=known_before)


def merge_rows(told: Mapping[str, Row], *, known_before: datetime | None = None) -> Merged:
    """Make the mirror say of these records, by their ids, what the service told, and of the others what it said.

    In the caller's transaction; whoever else merges waits for its end. Rows that say it already are not written. A
    record that changed gets a `TransactionChange`; the totals go along. With `known_before`, what was first seen at
    that moment or later does not count as known. Whoever told them, a `COUNT` pass that is under way has seen them.
    """
    rows = list(told.values())
    locks.hold("mirror")
    now = clock.now()
    writer = _WRITERS[connection.vendor]
    writer.note(rows)
    is_known = [True] * len(rows)
    new, known = [], {}
    for place, pk in not_settled(known_before):
        is_known[place] = False
        if pk is None:
            new.append(rows[place])
        else:
            known[pk] = rows[place]
    changes = _changes(known)
    if new or changes:
        _write(writer, new, changes, now)
    if Mirror.objects.filter(pk=1, pass_depth=Mirror.Depth.COUNT).exists():
        note_sightings()
    return Merged(len(new), sum(1 for change in changes if change.after), is_known)


def _changes(known: Mapping[int, Row]) -> list[Change]:
    """Those of the rows that differ from what stands there; what was merely seen too lately does not."""
    stored = Transaction.objects.in_bulk(list(known))
    return [
        _change(stored[pk], row)
        for pk, row in known.items()
        if bytes(stored[pk].digest) != row.digest or stored[pk].missing_since
    ]


def _change(stored: Transaction, row: Row) -> Change:
    told = row.values | {"missing_since": None}
    changed = [name for name in told if getattr(stored, name) != told[name]]
    before = {name: _text(getattr(stored, name)) for name in changed}
    return Change(stored, row, before, {name: _text(told[name]) for name in changed})


def _text(value: object) -> object:
    match value:
        case Decimal():
            return normal_text(value)
        case datetime():
            return value.isoformat()
    return value


def _write(writer: Writer, new: list[Row], changes: list[Change], now: datetime) -> None:
    facets = facet_ids({row.words for row in (*new, *(change.row for change in changes))})
    # The service lists the newest first: of two of the same moment, the later one gets the higher id.
    writings = [Writing(row, facets[row.words], None) for row in reversed(new)]
    writings += [
        Writing(change.row, facets[change.row.words], now if change.after else None) for change in changes
    ]
    newest_before = Transaction.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    writer.write(writings, now)
    TransactionChange.objects.bulk_create(
        TransactionChange(transaction=change.known, seen_at=now, before=change.before, after=change.after)
        for change in changes
        if change.after
    )
    keep_totals(_differences(facets, new, changes, now))
    arrived = ((row.record.currency, _link(row, now)) for row in reversed(new))
    breaks.reexamine(itertools.chain(arrivals.touched(arrived, newest_before), _moved(changes)))
    Mirror.objects.filter(pk=1).update(rows=F("rows") + len(new))


def keep_totals(differences: Differences) -> None:
    """Let the totals of days go along with their rows, in the transaction that writes these."""
    if sums := differences.that_differ():
        _WRITERS[connection.vendor].add(sums)


def _link(row: Row, now: datetime) -> chain.Link:
    """The new row as a part of the chain of balances, as `books.reading` will read it."""
    told = row.record
    adds = chain.effect(row.words[3], row.amount, row.fee) if told.created_at else None
    before = None if told.previous_balance is None else kept(told.previous_balance)
    return chain.link(0, told.created_at or now, before, adds)


def _moved(changes: list[Change]) -> Iterator[tuple[str, datetime]]:
    """Where the chain of balances may be another one since these changed."""
    for change in changes:
        if not breaks.MOVING.isdisjoint(change.after):
            yield change.known.currency, change.known.occurred_at
            yield change.row.record.currency, change.row.record.created_at or change.known.occurred_at


def _differences(
    facets: Mapping[Words, int], new: list[Row], changes: list[Change], now: datetime
) -> Differences:
    differences = Differences()
    for row in new:
        differences.at(row.record.created_at or now, facets[row.words]).add(row.amount, row.fee)
    for change in changes:
        known, row = change.known, change.row
        if not known.missing_since:  # what the service did not list was taken out of them then
            differences.at(known.occurred_at, known.facet_id).subtract(known.amount, known.fee)
        moment = row.record.created_at or known.occurred_at
        differences.at(moment, facets[row.words]).add(row.amount, row.fee)
    return differences
