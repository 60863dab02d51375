"""The chain of one currency as the mirror holds it, read some records at a time.

What left the service's list is no part of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from backoffice.core.pagination import Order, Position, Read, Stretch, behind, reader_of
from backoffice.ledger.books import chain
from backoffice.ledger.books.chain import Landmark, Link
from backoffice.ledger.mirrored import Transaction

ORDER = ("occurred_at", "id")
_COLUMNS = ("pk", "occurred_at", "created_at", "previous_balance", "direction", "amount", "fee")
_AT_FIRST, _AT_ONCE = 10, 500
_LOOKED_BACK = 10


@contextmanager
def one_moment() -> Iterator[None]:
    """Whatever is read in the block is of the same moment, though the sync merges meanwhile. Nothing may be written.

    Within a transaction of the caller's it is left to that one.
    """
    if connection.in_atomic_block:
        yield
        return
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        # By hand: Django would begin as a writer on SQLite, and with a moment for each question on PostgreSQL.
        cursor.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_postgresql else "BEGIN DEFERRED"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")


def listed(currency: str) -> QuerySet[Transaction]:
    """The records of this currency that the service lists, in order of time."""
    return Transaction.objects.filter(currency=currency, missing_since__isnull=True).order_by(*ORDER)


def by_whole_moments(rows: QuerySet[Transaction]) -> Read[Transaction]:
    """Reads them, in order of time, so that a page ends where a moment does: only as a whole it has an order.

    What tells the same moment as a whole page is cut all the same.
    """
    read_any = reader_of(rows)

    def read(order: Order, position: Position | None, limit: int) -> Stretch[Transaction]:
        found = read_any(order, position, limit)
        if len(found.rows) < limit:
            return found
        whole = [row for row in found.rows if row.occurred_at != found.rows[-1].occurred_at]
        return Stretch(whole, cut_at=[str(whole[-1].occurred_at), whole[-1].pk]) if whole else found

    return read


def link_of(row: Transaction) -> Link:
    """The record as a part of the chain."""
    return _link([getattr(row, name) for name in _COLUMNS])


def landmark_before(currency: str, moment: datetime) -> Landmark | None:
    """The last landmark before that moment; None if there is none. Reads no further back than `chain.reach`."""
    rows = listed(currency).filter(occurred_at__lt=moment).reverse()
    size = _LOOKED_BACK
    while True:
        newest = [_link(row) for row in rows.values_list(*_COLUMNS)[:size]]
        is_all = len(newest) < size
        landmark = chain.last_landmark(newest[::-1], is_all=is_all)
        if landmark or is_all:
            return landmark
        size = min(size * 10, chain.reach())


def walked(currency: str, landmark: Landmark | None) -> Iterator[chain.Stretch]:
    """What stands behind this landmark, or everything, by stretches."""
    return chain.walk(chain.moments(_links(currency, landmark.last.at if landmark else None)), landmark)


def links_behind(currency: str, landmark: Landmark | None) -> Iterator[Link]:
    """The same, link by link."""
    return (step.link for stretch in walked(currency, landmark) for step in stretch.steps)


def links_between(currency: str, first: datetime, last: datetime) -> Iterator[Link]:
    """The chain from the one moment to the other, both included, in its order."""
    links = takewhile(lambda link: link.at <= last, links_behind(currency, landmark_before(currency, first)))
    return (link for link in links if link.at >= first)


def last_before(currency: str, moment: datetime) -> Link | None:
    """The record that stands last before that moment; None if there is none."""
    landmark = landmark_before(currency, moment)
    last = landmark.last if landmark else None
    for link in links_behind(currency, landmark):
        if link.at >= moment:
            break
        last = link
    return last


def _links(currency: str, since: datetime | None) -> Iterator[Link]:
    rows = listed(currency)
    found = rows if since is None else rows.filter(occurred_at__gt=since)
    size = _AT_FIRST
    while True:
        links = [_link(row) for row in found.values_list(*_COLUMNS)[:size]]
        yield from links
        if len(links) < size:
            return
        found = rows.filter(behind(ORDER, [links[-1].at, links[-1].pk]))
        size = min(size * 10, _AT_ONCE)


def _link(row: Any) -> Link:
    pk, at, created_at, before, direction, amount, fee = row
    adds = None if created_at is None else chain.effect(direction, amount, fee)
    return chain.link(pk, at, before, adds)
