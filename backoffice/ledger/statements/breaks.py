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
from backoffice.core.database.queries import batched
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
    for currency_links in links.values():
        currency_links.sort(key=lambda link: link.at)
    other_times = _existing_between(links, newest_before)
    for currency, currency_links in links.items():
        moments = (
            {link.at for link in currency_links}
            if other_times is None
            else run_ends(currency_links, other_times[currency])
        )
        for moment in moments:
            yield currency, moment


def run_ends(links: list[ChainLink], other_times: list[datetime]) -> set[datetime]:
    """The times at which a run of `links` begins or ends.

    `links` are sorted; `other_times` are the times of other records.
    """
    times = {links[0].at, links[-1].at}
    for one, following in pairwise(links):
        is_separated = bisect_left(other_times, one.at) < bisect_right(other_times, following.at)
        if is_separated or one.after is None or one.after != following.before:
            times |= {one.at, following.at}
    return times


def _existing_between(
    links: Mapping[str, list[ChainLink]], newest_before: int
) -> Mapping[str, list[datetime]] | None:
    """The times of older records among the new ones, by currency; None if there are too many."""
    ranges = [
        Q(currency=currency, occurred_at__gte=currency_links[0].at, occurred_at__lte=currency_links[-1].at)
        for currency, currency_links in links.items()
        if len(currency_links) > 1
    ]
    other_times: dict[str, list[datetime]] = defaultdict(list)
    if ranges:
        existing = Transaction.objects.filter(
            reduce(or_, ranges), pk__lte=newest_before, missing_since__isnull=True
        )
        found = list(existing.order_by().values_list("currency", "occurred_at")[: MAX_EXISTING_BETWEEN + 1])
        if len(found) > MAX_EXISTING_BETWEEN:
            return None
        for currency, at in sorted(found):
            other_times[currency].append(at)
    return other_times


_MONEY_FIELDS = ("amount", "fee", "previous_balance", "direction", "currency", "created_at")
_MissingEffects = list[tuple[datetime, Decimal]]
"""The times of missing records, and what each added to the balance."""


def classify_breaks(currency: str, chain_breaks: list[ChainBreak]) -> list[BalanceBreak.Kind]:
    """The kind of each of these breaks, which are sorted by time. Three queries, whatever their number."""
    linked_pks = [link.pk for one in chain_breaks for link in (one.before, one.after)]
    changed = set(_changed_records(linked_pks))
    fees = dict(Transaction.objects.filter(pk__in=linked_pks).values_list("pk", "fee"))
    missing_effects = _missing_effects(currency, chain_breaks)
    return [_classify(one, missing_effects, fees, changed) for one in chain_breaks]


def _classify(
    chain_break: ChainBreak,
    missing_effects: _MissingEffects,
    fees: dict[int, Decimal | None],
    changed: set[int],
) -> BalanceBreak.Kind:
    effects_between = [
        adds for at, adds in missing_effects if chain_break.before.at <= at <= chain_break.after.at
    ]
    if effects_between and chain_break.difference in {*effects_between, reduce(EXACT.add, effects_between)}:
        return BalanceBreak.Kind.VANISHED
    if chain_break.difference == fees[chain_break.before.pk]:
        return BalanceBreak.Kind.FEE
    if chain_break.found == chain_break.before.before:
        return BalanceBreak.Kind.UNMOVED
    return (
        BalanceBreak.Kind.CHANGED
        if {chain_break.before.pk, chain_break.after.pk} & changed
        else BalanceBreak.Kind.GAP
    )


def _changed_records(pks: list[int]) -> Iterator[int]:
    """The records whose amounts or time changed after they were first mirrored."""
    changes = TransactionChange.objects.filter(transaction__in=pks).order_by()
    for pk, after in changes.values_list("transaction_id", "after"):
        if any(name in after for name in _MONEY_FIELDS):
            yield pk


def _missing_effects(currency: str, chain_breaks: list[ChainBreak]) -> _MissingEffects:
    missing = Transaction.objects.filter(missing_since__isnull=False, currency=currency).order_by()
    rows = missing.filter(
        occurred_at__gte=chain_breaks[0].before.at, occurred_at__lte=chain_breaks[-1].after.at
    )
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


def update_breaks(changed_rows: Iterable[tuple[str, datetime]]) -> None:
    """Update the stored breaks after rows of these currencies were written at these times."""
    moments: dict[str, set[datetime]] = defaultdict(set)
    for currency, moment in changed_rows:
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
        BalanceBreak.objects.filter(pk__in=[balance_break.pk for balance_break in obsolete]).delete()
    BalanceBreak.objects.bulk_create(new)
    return len(obsolete) + len(new)


def break_differences(examined: list[ExaminedPart]) -> tuple[list[BalanceBreak], list[BalanceBreak]]:
    """The stored breaks that were not found, and the found breaks that are not stored."""
    stored = {balance_break.after_id: balance_break for balance_break in _stored_breaks(examined)}
    found = {
        balance_break.after_id: balance_break for part in examined for balance_break in _new_breaks(part)
    }
    same = {pk for pk in stored.keys() & found.keys() if _is_same(stored[pk], found[pk])}
    return (
        [balance_break for pk, balance_break in stored.items() if pk not in same],
        [balance_break for pk, balance_break in found.items() if pk not in same],
    )


def examine_chain(currency: str, landmark: Landmark | None, at_most: float = float("inf")) -> ExaminedPart:
    """Examine the chain after this landmark, for about `at_most` records, up to a landmark or to the end."""
    chain_breaks: list[ChainBreak] = []
    links, since = 0, landmark.last.at if landmark else None
    for segment in segments_after(currency, landmark):
        chain_breaks += breaks_in(segment.steps)
        links += len(segment.steps)
        if links >= at_most and segment.landmark:
            return ExaminedPart(currency, since, segment.landmark.last.at, chain_breaks)
    return ExaminedPart(currency, since, None, chain_breaks)


def _parts_around(currency: str, moments: set[datetime]) -> Iterator[ExaminedPart]:
    pending = deque(sorted(moments))
    while pending:
        landmark = landmark_before(currency, pending[0])
        chain_breaks: list[ChainBreak] = []
        until: datetime | None = None
        links_after_change = 0  # records after the last of these moments
        for segment in segments_after(currency, landmark):
            chain_breaks += breaks_in(segment.steps)
            until = segment.steps[-1].link.at
            links_after_change += len(segment.steps)
            while pending and pending[0] < until:
                pending.popleft()
                links_after_change = 0
            if _remains_landmark(segment.landmark, links_after_change) and (
                not pending or pending[0] > until
            ):
                break
        else:
            pending.clear()
            until = None
        yield ExaminedPart(currency, landmark.last.at if landmark else None, until, chain_breaks)


def _remains_landmark(landmark: Landmark | None, links_after_change: int) -> bool:
    """Whether it also was a landmark before a change that lies `links_after_change` records earlier.

    A moment that was left unchecked is a landmark only because of the records before it, so the change may
    affect it.
    """
    return landmark is not None and (
        not landmark.unsettled or links_after_change > chain.MAX_RECORDS_WITHOUT_LANDMARK
    )


def _stored_breaks(examined: list[ExaminedPart]) -> Iterator[BalanceBreak]:
    """The stored breaks of these parts, one query for several parts."""
    for parts in batched(examined, _PARTS_AT_ONCE):
        condition = reduce(or_, map(_part_condition, parts))
        yield from BalanceBreak.objects.filter(condition).order_by()


def _part_condition(part: ExaminedPart) -> Q:
    condition = Q(currency=part.currency)
    condition &= Q(at__gt=part.since) if part.since else Q()
    return condition & Q(at__lte=part.until) if part.until else condition


def _new_breaks(part: ExaminedPart) -> Iterator[BalanceBreak]:
    if not part.breaks:
        return
    now = clock.now()
    for chain_break, kind in zip(part.breaks, classify_breaks(part.currency, part.breaks), strict=True):
        yield BalanceBreak(
            currency=part.currency,
            at=chain_break.after.at,
            kind=kind,
            expected=chain_break.expected,
            found=chain_break.found,
            difference=abs(chain_break.difference),
            direction="in" if chain_break.difference > 0 else "out",
            before_id=chain_break.before.pk,
            after_id=chain_break.after.pk,
            detected_at=now,
        )


def _is_same(one: BalanceBreak, other: BalanceBreak) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _COMPARED_FIELDS)
