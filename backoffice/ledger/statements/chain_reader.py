"""Read the balance chain of one currency from the mirror, in batches. Missing records are not part of it."""

from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.db.models import QuerySet

from backoffice.core.web.pagination import (
    Order,
    Position,
    RowBatch,
    RowReader,
    after_position,
    queryset_reader,
)
from backoffice.ledger.models import Transaction
from backoffice.ledger.statements import chain
from backoffice.ledger.statements.chain import ChainLink, Landmark

CHAIN_ORDER = ("occurred_at", "id")
_COLUMNS = ("pk", "occurred_at", "created_at", "previous_balance", "direction", "amount", "fee")
_FIRST_BATCH, _BATCH = 10, 500
_LOOKBACK = 10


def listed_transactions(currency: str) -> QuerySet[Transaction]:
    """The records of this currency that the provider lists, ordered by time."""
    return Transaction.objects.filter(currency=currency, missing_since__isnull=True).order_by(*CHAIN_ORDER)


def reader_of_whole_moments(rows: QuerySet[Transaction]) -> RowReader[Transaction]:
    """A reader whose pages end at the end of a moment, because only a whole moment can be ordered.

    A moment that fills a whole page is split all the same.
    """
    read_any = queryset_reader(rows)

    def read(order: Order, position: Position | None, limit: int) -> RowBatch[Transaction]:
        found = read_any(order, position, limit)
        if len(found.rows) < limit:
            return found
        complete = [row for row in found.rows if row.occurred_at != found.rows[-1].occurred_at]
        return (
            RowBatch(complete, cut_at=[str(complete[-1].occurred_at), complete[-1].pk]) if complete else found
        )

    return read


def chain_link_of(row: Transaction) -> ChainLink:
    """The record as a link of the chain."""
    return _make_link([getattr(row, name) for name in _COLUMNS])


def landmark_before(currency: str, moment: datetime) -> Landmark | None:
    """The last landmark before that time, if any.

    Reads no further back than `chain.lookback_limit()` records.
    """
    rows = listed_transactions(currency).filter(occurred_at__lt=moment).reverse()
    size = _LOOKBACK
    while True:
        newest = [_make_link(row) for row in rows.values_list(*_COLUMNS)[:size]]
        is_all = len(newest) < size
        landmark = chain.last_landmark(newest[::-1], is_all=is_all)
        if landmark or is_all:
            return landmark
        size = min(size * 10, chain.lookback_limit())


def segments_after(currency: str, landmark: Landmark | None) -> Iterator[chain.ChainSegment]:
    """The history after this landmark, or all of it, by segments."""
    return chain.segments(chain.moments(_links(currency, landmark.last.at if landmark else None)), landmark)


def links_after(currency: str, landmark: Landmark | None) -> Iterator[ChainLink]:
    """The history after this landmark, or all of it, link by link."""
    return (step.link for segment in segments_after(currency, landmark) for step in segment.steps)


def links_between(currency: str, first: datetime, last: datetime) -> Iterator[ChainLink]:
    """The chain from `first` to `last`, both included, in chain order."""
    links = takewhile(lambda link: link.at <= last, links_after(currency, landmark_before(currency, first)))
    return (link for link in links if link.at >= first)


def last_link_before(currency: str, moment: datetime) -> ChainLink | None:
    """The last record of the chain before that time; None if there is none."""
    return links_around(currency, moment)[0]


def links_around(currency: str, moment: datetime) -> tuple[ChainLink | None, ChainLink | None]:
    """The last record of the chain before that time and the first at it or later; None where there is none."""
    landmark = landmark_before(currency, moment)
    last = landmark.last if landmark else None
    for link in links_after(currency, landmark):
        if link.at >= moment:
            return last, link
        last = link
    return last, None


def _links(currency: str, since: datetime | None) -> Iterator[ChainLink]:
    rows = listed_transactions(currency)
    found = rows if since is None else rows.filter(occurred_at__gt=since)
    size = _FIRST_BATCH
    while True:
        links = [_make_link(row) for row in found.values_list(*_COLUMNS)[:size]]
        yield from links
        if len(links) < size:
            return
        found = rows.filter(after_position(CHAIN_ORDER, [links[-1].at, links[-1].pk]))
        size = min(size * 10, _BATCH)


def _make_link(row: Any) -> ChainLink:
    pk, at, created_at, before, direction, amount, fee = row
    adds = None if created_at is None else chain.balance_effect(direction, amount, fee)
    return chain.make_link(pk, at, before, adds)
