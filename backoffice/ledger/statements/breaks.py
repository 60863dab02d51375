"""Keep the stored balance breaks consistent with the rows at every commit.

A new, changed, moved or missing row can only affect the chain between the landmark before it and the first
landmark after it that existed without it (`chain`), so only that part is read again. In a run of new records
that follow from each other, with no other record between them, only the ends are examined. Everything runs in
the caller's transaction, which holds the "mirror" lock.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from operator import or_

from django.db.models import Q

from backoffice.core import clock
from backoffice.core.fields import EXACT
from backoffice.ledger.models import BalanceBreak, Transaction, TransactionChange
from backoffice.ledger.statements import chain
from backoffice.ledger.statements.chain import ChainBreak, ChainLink, Landmark, balance_effect, breaks_in
from backoffice.ledger.statements.chain_reader import landmark_before, segments_after

MAX_EXISTING_BETWEEN = 200
"""If there are more existing records than this among the new ones, every new record is examined."""


def moments_to_examine(
    arrived: Iterable[tuple[str, ChainLink]], newest_before: int
) -> Iterator[tuple[str, datetime]]:
    """Currency and time of the new records that must be examined. One query.

    `arrived` is in the order in which the records were written, with links that have no ids yet;
    `newest_before` is the highest id that existed before them.
    """
    links: dict[str, list[ChainLink]] = defaultdict(list)
    for currency, link in arrived:
        if currency:
            links[currency].append(link)
    for some in links.values():
        some.sort(key=lambda link: link.at)
    others = _existing_between(links, newest_before)
    for currency, some in links.items():
        moments = {link.at for link in some} if others is None else run_ends(some, others[currency])
        for moment in moments:
            yield currency, moment


def run_ends(links: list[ChainLink], others: list[datetime]) -> set[datetime]:
    """The times at which a run of `links` begins or ends.

    `links` are sorted; `others` are the times of other records.
    """
    ends = {links[0].at, links[-1].at}
    for one, following in pairwise(links):
        are_apart = bisect_left(others, one.at) < bisect_right(others, following.at)
        if are_apart or one.after is None or one.after != following.before:
            ends |= {one.at, following.at}
    return ends


def _existing_between(
    links: Mapping[str, list[ChainLink]], newest_before: int
) -> Mapping[str, list[datetime]] | None:
    """The times of older records among the new ones, by currency; None if there are too many."""
    places = [
        Q(currency=currency, occurred_at__gte=some[0].at, occurred_at__lte=some[-1].at)
        for currency, some in links.items()
        if len(some) > 1
    ]
    others: dict[str, list[datetime]] = defaultdict(list)
    if places:
        there = Transaction.objects.filter(
            reduce(or_, places), pk__lte=newest_before, missing_since__isnull=True
        )
        found = list(there.order_by().values_list("currency", "occurred_at")[: MAX_EXISTING_BETWEEN + 1])
        if len(found) > MAX_EXISTING_BETWEEN:
            return None
        for currency, at in sorted(found):
            others[currency].append(at)
    return others


_MONEY_FIELDS = ("amount", "fee", "previous_balance", "direction", "currency", "created_at")
_MissingEffects = list[tuple[datetime, Decimal]]
"""The times of missing records, and what each added to the balance."""


def classify_breaks(currency: str, broken: list[ChainBreak]) -> list[BalanceBreak.Kind]:
    """The kind of each of these breaks, which are sorted by time. Three queries, whatever their number."""
    around = [link.pk for one in broken for link in (one.before, one.after)]
    changed = set(_changed_records(around))
    fees = dict(Transaction.objects.filter(pk__in=around).values_list("pk", "fee"))
    vanished = _missing_effects(currency, broken)
    return [_classify(one, vanished, fees, changed) for one in broken]


def _classify(
    one: ChainBreak, vanished: _MissingEffects, fees: dict[int, Decimal | None], changed: set[int]
) -> BalanceBreak.Kind:
    added = [adds for at, adds in vanished if one.before.at <= at <= one.after.at]
    if added and one.difference in {*added, reduce(EXACT.add, added)}:
        return BalanceBreak.Kind.VANISHED
    if one.difference == fees[one.before.pk]:
        return BalanceBreak.Kind.FEE
    if one.found == one.before.before:
        return BalanceBreak.Kind.UNMOVED
    return BalanceBreak.Kind.CHANGED if {one.before.pk, one.after.pk} & changed else BalanceBreak.Kind.GAP


def _changed_records(pks: list[int]) -> Iterator[int]:
    """The records whose amounts or time changed after they were first mirrored."""
    changes = TransactionChange.objects.filter(transaction__in=pks).order_by()
    for pk, after in changes.values_list("transaction_id", "after"):
        if any(name in after for name in _MONEY_FIELDS):
            yield pk


def _missing_effects(currency: str, broken: list[ChainBreak]) -> _MissingEffects:
    missing = Transaction.objects.filter(missing_since__isnull=False, currency=currency).order_by()
    rows = missing.filter(occurred_at__gte=broken[0].before.at, occurred_at__lte=broken[-1].after.at)
    effects = rows.values_list("occurred_at", "direction", "amount", "fee")
    added = ((at, balance_effect(direction, amount, fee)) for at, direction, amount, fee in effects)
    return [(at, adds) for at, adds in added if adds is not None]


CHAIN_FIELDS = frozenset(
    {"amount", "fee", "previous_balance", "direction", "currency", "created_at", "missing_since"}
)
"""The fields that the chain depends on."""
_PARTS_AT_ONCE = 20
_COMPARED_FIELDS = ("currency", "at", "kind", "expected", "found", "before_id", "after_id")


@dataclass(frozen=True)
class ExaminedPart:
    """A part of one currency's chain and its breaks: after `since`, up to `until` (None: no limit)."""

    currency: str
    since: datetime | None
    until: datetime | None
    breaks: list[ChainBreak]


def update_breaks(touched: Iterable[tuple[str, datetime]]) -> None:
    """Update the stored breaks after rows of these currencies were written at these times."""
    moments: dict[str, set[datetime]] = defaultdict(set)
    for currency, moment in touched:
        moments[currency].add(moment)
    examined = [
        part
        for currency in sorted(moments.keys() - {""})
        for part in _parts_around(currency, moments[currency])
    ]
    store_breaks(examined)


def store_breaks(examined: list[ExaminedPart]) -> int:
    """Replace the stored breaks of these parts with the breaks found. Returns the number of rows changed."""
    obsolete, new = break_differences(examined)
    if obsolete:
        BalanceBreak.objects.filter(pk__in=[broken.pk for broken in obsolete]).delete()
    BalanceBreak.objects.bulk_create(new)
    return len(obsolete) + len(new)


def break_differences(examined: list[ExaminedPart]) -> tuple[list[BalanceBreak], list[BalanceBreak]]:
    """The stored breaks that were not found, and the found breaks that are not stored."""
    stored = {broken.after_id: broken for broken in _stored_breaks(examined)}
    found = {broken.after_id: broken for part in examined for broken in _new_breaks(part)}
    same = {pk for pk in stored.keys() & found.keys() if _is_same(stored[pk], found[pk])}
    return (
        [broken for pk, broken in stored.items() if pk not in same],
        [broken for pk, broken in found.items() if pk not in same],
    )


def examine_chain(currency: str, landmark: Landmark | None, most: float = float("inf")) -> ExaminedPart:
    """Examine the chain after this landmark, for about `most` records, up to a landmark or to the end."""
    broken: list[ChainBreak] = []
    links, since = 0, landmark.last.at if landmark else None
    for stretch in segments_after(currency, landmark):
        broken += breaks_in(stretch.steps)
        links += len(stretch.steps)
        if links >= most and stretch.landmark:
            return ExaminedPart(currency, since, stretch.landmark.last.at, broken)
    return ExaminedPart(currency, since, None, broken)


def _parts_around(currency: str, moments: set[datetime]) -> Iterator[ExaminedPart]:
    waiting = deque(sorted(moments))
    while waiting:
        landmark = landmark_before(currency, waiting[0])
        broken: list[ChainBreak] = []
        until: datetime | None = None
        behind = 0  # records after the last of these moments
        for stretch in segments_after(currency, landmark):
            broken += breaks_in(stretch.steps)
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
        yield ExaminedPart(currency, landmark.last.at if landmark else None, until, broken)


def _is_landmark_still(landmark: Landmark | None, behind: int) -> bool:
    """Whether it also was a landmark before a change that lies `behind` records earlier.

    A moment that was left unchecked is a landmark only because of the records before it, so the change may
    affect it.
    """
    return landmark is not None and (not landmark.unsettled or behind > chain.MAX_RECORDS_WITHOUT_LANDMARK)


def _stored_breaks(examined: list[ExaminedPart]) -> Iterator[BalanceBreak]:
    """The stored breaks of these parts, one query for several parts."""
    for first in range(0, len(examined), _PARTS_AT_ONCE):
        there = reduce(or_, map(_part_condition, examined[first : first + _PARTS_AT_ONCE]))
        yield from BalanceBreak.objects.filter(there).order_by()


def _part_condition(part: ExaminedPart) -> Q:
    here = Q(currency=part.currency)
    here &= Q(at__gt=part.since) if part.since else Q()
    return here & Q(at__lte=part.until) if part.until else here


def _new_breaks(part: ExaminedPart) -> Iterator[BalanceBreak]:
    if not part.breaks:
        return
    now = clock.now()
    for broken, kind in zip(part.breaks, classify_breaks(part.currency, part.breaks), strict=True):
        yield BalanceBreak(
            currency=part.currency,
            at=broken.after.at,
            kind=kind,
            expected=broken.expected,
            found=broken.found,
            difference=abs(broken.difference),
            direction="in" if broken.difference > 0 else "out",
            before_id=broken.before.pk,
            after_id=broken.after.pk,
            detected_at=now,
        )


def _is_same(one: BalanceBreak, other: BalanceBreak) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _COMPARED_FIELDS)
