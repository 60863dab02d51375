"""Keeps the breaks of the chain: what stands in the table is what the rows show, at every commit.

A row that is new, changed, moved or gone can only matter between the landmark before it and the first one behind it
that was there without it (`chain`), so nothing else is read again. Everything happens in the caller's transaction,
which holds "mirror".
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_

from django.db.models import Q

from backoffice.core import clock
from backoffice.ledger.books import chain
from backoffice.ledger.books.causes import kinds_of
from backoffice.ledger.books.chain import Broken, Landmark, broken_of
from backoffice.ledger.books.reading import landmark_before, walked
from backoffice.ledger.mirrored import Break

MOVING = frozenset(
    {"amount", "fee", "previous_balance", "direction", "currency", "created_at", "missing_since"}
)
"""The members of a record that the chain depends on."""
_PARTS_AT_ONCE = 20
_SAME = ("currency", "at", "kind", "expected", "found", "before_id", "after_id")


@dataclass(frozen=True)
class Examined:
    """A part of one currency's chain, behind `since` and up to `until`, each None for its end, and what broke in it."""

    currency: str
    since: datetime | None
    until: datetime | None
    broken: list[Broken]


def reexamine(touched: Iterable[tuple[str, datetime]]) -> None:
    """Make the kept breaks agree with the rows, after rows of these currencies were written at these moments."""
    moments: dict[str, set[datetime]] = defaultdict(set)
    for currency, moment in touched:
        moments[currency].add(moment)
    examined = [
        part for currency in sorted(moments.keys() - {""}) for part in _around(currency, moments[currency])
    ]
    keep(examined)


def keep(examined: list[Examined]) -> int:
    """Write what was found there in the place of what was kept of there; how many rows that changed."""
    gone, new = differences(examined)
    if gone:
        Break.objects.filter(pk__in=[broken.pk for broken in gone]).delete()
    Break.objects.bulk_create(new)
    return len(gone) + len(new)


def differences(examined: list[Examined]) -> tuple[list[Break], list[Break]]:
    """What is kept of there and was not found, and what was found there and is not kept."""
    kept = {broken.after_id: broken for broken in _kept(examined)}
    found = {broken.after_id: broken for part in examined for broken in _found(part)}
    same = {pk for pk in kept.keys() & found.keys() if _is_same(kept[pk], found[pk])}
    return (
        [broken for pk, broken in kept.items() if pk not in same],
        [broken for pk, broken in found.items() if pk not in same],
    )


def examine(currency: str, landmark: Landmark | None, most: float = float("inf")) -> Examined:
    """The chain behind this landmark, for about so many records, up to a landmark or to its end."""
    broken: list[Broken] = []
    links, since = 0, landmark.last.at if landmark else None
    for stretch in walked(currency, landmark):
        broken += broken_of(stretch.steps)
        links += len(stretch.steps)
        if links >= most and stretch.landmark:
            return Examined(currency, since, stretch.landmark.last.at, broken)
    return Examined(currency, since, None, broken)


def _around(currency: str, moments: set[datetime]) -> Iterator[Examined]:
    waiting = deque(sorted(moments))
    while waiting:
        landmark = landmark_before(currency, waiting[0])
        broken: list[Broken] = []
        until: datetime | None = None
        behind = 0  # records behind the last of these moments
        for stretch in walked(currency, landmark):
            broken += broken_of(stretch.steps)
            until = stretch.steps[-1].link.at
            behind += len(stretch.steps)
            while waiting and waiting[0] < until:
                waiting.popleft()
                behind = 0
            if _is_landmark_still(stretch.landmark, behind) and (not waiting or waiting[0] > until):
                break
        else:
            waiting.clear()
            until = None
        yield Examined(currency, landmark.last.at if landmark else None, until, broken)


def _is_landmark_still(landmark: Landmark | None, behind: int) -> bool:
    """Whether it was one before a change so many records ahead of it: a moment that was given up depends on those."""
    return landmark is not None and (not landmark.unsettled or behind > chain.MOST_UNSETTLED)


def _kept(examined: list[Examined]) -> Iterator[Break]:
    """What is kept of these parts, with one query for some of them at a time."""
    for first in range(0, len(examined), _PARTS_AT_ONCE):
        there = reduce(or_, map(_place, examined[first : first + _PARTS_AT_ONCE]))
        yield from Break.objects.filter(there).order_by()


def _place(part: Examined) -> Q:
    here = Q(currency=part.currency)
    here &= Q(at__gt=part.since) if part.since else Q()
    return here & Q(at__lte=part.until) if part.until else here


def _found(part: Examined) -> Iterator[Break]:
    if not part.broken:
        return
    now = clock.now()
    for broken, kind in zip(part.broken, kinds_of(part.currency, part.broken), strict=True):
        yield Break(
            currency=part.currency,
            at=broken.after.at,
            kind=kind,
            expected=broken.expected,
            found=broken.found,
            difference=abs(broken.difference),
            direction="in" if broken.difference > 0 else "out",
            before_id=broken.before.pk,
            after_id=broken.after.pk,
            noticed_at=now,
        )


def _is_same(one: Break, other: Break) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _SAME)
