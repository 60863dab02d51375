"""The balance chain: each record of a currency starts with the balance that the record before it left.

Pure functions.

`balance_effect` is the one rule for what a record adds to the balance. Records of the same moment have no
given order; the order used is the one in which each follows from the one before, if any exists (an Eulerian
path, found by Hierholzer's algorithm). So a break is reported only where no order of the records of one
moment explains the balances.

A record without a balance before it, a direction or a time cannot be placed: its moment is not checked, and
the chain restarts after it. It also restarts after a landmark: a moment whose own balances determine its
order, such as a single record. If there is no landmark for long, moments are left unchecked up to the next
one, which limits how far a reader must look back.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain, groupby, pairwise, zip_longest
from typing import NamedTuple

from backoffice.core.fields import EXACT

MAX_RECORDS_PER_MOMENT = 200
"""Records of one moment.

If there are more, the provider reports days rather than times, and nothing is checked.
"""
MAX_RECORDS_WITHOUT_LANDMARK = 1_000
"""Records without a landmark. After this many, the moments up to the next landmark are left unchecked."""


class ChainLink(NamedTuple):
    """A link of the chain: the balance `before` and `after` a record, None if it cannot be placed."""

    pk: int
    at: datetime
    before: Decimal | None
    after: Decimal | None


class ChainBreak(NamedTuple):
    """Two consecutive records that do not match: the balance expected and the balance found."""

    before: ChainLink
    after: ChainLink
    expected: Decimal
    found: Decimal

    @property
    def difference(self) -> Decimal:
        """The amount received, or sent if negative, that no record shows."""
        return EXACT.subtract(self.found, self.expected)


class ChainStep(NamedTuple):
    """A link and the link before it in the order; None at the beginning of the history."""

    link: ChainLink
    previous: ChainLink | None

    @property
    def chain_break(self) -> ChainBreak | None:
        """The break, if both balances are known and differ."""
        if self.previous is None or self.previous.after is None or self.link.before is None:
            return None
        if self.previous.after == self.link.before:
            return None
        return ChainBreak(self.previous, self.link, self.previous.after, self.link.before)


class ChainMoment(NamedTuple):
    """All links of the same moment: in chain order if their own balances determine it, otherwise by `pk`.

    Either all of them can be placed, or none. `is_landmark`: the balance after it does not depend on earlier
    records, so the chain can be read from there.
    """

    links: list[ChainLink]
    is_landmark: bool


class Landmark(NamedTuple):
    """A point where the chain can be resumed: its last link, and the links since the last true landmark.

    `unsettled` is 0 for a true landmark, and positive for a moment that was left unchecked.
    """

    last: ChainLink
    unsettled: int = 0


class ChainSegment(NamedTuple):
    """Links that are ordered together: up to a landmark, or to the end of the history (None)."""

    steps: list[ChainStep]
    landmark: Landmark | None


@dataclass(frozen=True)
class _Path:
    """One possible order of the moments so far: its number of breaks and its last link."""

    breaks: int
    last: ChainLink | None
    order: list[ChainLink]
    earlier: "_Path | None" = None


def balance_effect(direction: str, amount: Decimal, fee: Decimal | None) -> Decimal | None:
    """What a record adds to the balance, whatever its status; None if its direction is unknown.

    The fee is charged on top of the amount. A failed record counts, because its refund is a later record.
    """
    if direction not in {"in", "out"}:
        return None
    return EXACT.subtract(amount if direction == "in" else -amount, fee or Decimal(0))


def make_link(pk: int, at: datetime, before: Decimal | None, adds: Decimal | None) -> ChainLink:
    """The link of a record; both balances are None if it cannot be placed."""
    if before is None or adds is None:
        return ChainLink(pk, at, None, None)
    return ChainLink(pk, at, before, EXACT.add(before, adds))


def moments(links: Iterable[ChainLink]) -> Iterator[ChainMoment]:
    """Group the links, which are sorted by time and `pk`, by moment."""
    for _, group in groupby(links, key=lambda one: one.at):
        yield _moment(list(group))


def landmarks(
    history: Iterable[ChainMoment], unsettled: int = 0
) -> Iterator[tuple[ChainMoment, Landmark | None]]:
    """The moments, each with its landmark, if it is one.

    `unsettled` is the number of links since the last landmark before them. Beyond
    `MAX_RECORDS_WITHOUT_LANDMARK`, moments are left unchecked, and each of them is a landmark. So what a
    moment is depends on a limited number of earlier links.
    """
    for moment in history:
        unsettled = 0 if moment.is_landmark else unsettled + len(moment.links)
        one = _unplaced(moment.links) if unsettled > MAX_RECORDS_WITHOUT_LANDMARK else moment
        yield one, Landmark(one.links[-1], unsettled) if one.is_landmark else None


def lookback_limit() -> int:
    """This many consecutive links always contain enough whole moments to find the last landmark."""
    return MAX_RECORDS_WITHOUT_LANDMARK + MAX_RECORDS_PER_MOMENT + 1


def last_landmark(links: list[ChainLink], *, is_all: bool) -> Landmark | None:
    """The last landmark in these links, if it can be found; unless `is_all`, earlier links may be missing."""
    history = list(moments(links))
    if not is_all and history[0].links[0].after is not None:
        del history[
            0
        ]  # its earlier links may be missing; a moment that cannot be placed is a landmark in any case
    found = [landmark for _, landmark in landmarks(history) if landmark]
    return found[-1] if found else None


def segments(history: Iterable[ChainMoment], landmark: Landmark | None = None) -> Iterator[ChainSegment]:
    """The history after this landmark, or all of it, split into segments after every landmark."""
    previous, unsettled = landmark or (None, 0)
    segment: list[ChainMoment] = []
    for moment, landmark_here in landmarks(history, unsettled):
        segment.append(moment)
        if landmark_here is not None:
            yield ChainSegment(steps(segment, previous), landmark_here)
            previous, segment = landmark_here.last, []
    if segment:
        yield ChainSegment(steps(segment, previous), None)


def steps(segment: list[ChainMoment], previous: ChainLink | None) -> list[ChainStep]:
    """The links of one segment in the order with the fewest breaks, following `previous`."""
    order = (
        segment[0].links if len(segment) == 1 and segment[0].is_landmark else _best_order(segment, previous)
    )
    return list(map(ChainStep, order, chain([previous], order)))


def breaks_in(steps: list[ChainStep]) -> list[ChainBreak]:
    """The breaks among these steps."""
    return [chain_break for step in steps if (chain_break := step.chain_break)]


def _moment(links: list[ChainLink]) -> ChainMoment:
    if len(links) == 1:
        return ChainMoment(links, is_landmark=True)
    if len(links) > MAX_RECORDS_PER_MOMENT or any(one.after is None for one in links):
        return _unplaced(links)
    starts = _surplus_starts(links)
    order = in_order(links, starts[0]) if starts else links
    is_determined = bool(starts) and not _breaks(order)
    return ChainMoment(order if is_determined else links, is_landmark=is_determined)


def _unplaced(links: list[ChainLink]) -> ChainMoment:
    return ChainMoment([ChainLink(one.pk, one.at, None, None) for one in links], is_landmark=True)


def _best_order(segment: list[ChainMoment], previous: ChainLink | None) -> list[ChainLink]:
    paths = [_Path(0, previous, [])]
    for moment, following in zip_longest(segment, segment[1:]):
        paths = _extend_paths(paths, moment, following)
    return _links_of_path(min(paths, key=lambda path: path.breaks))


def _links_of_path(path: _Path | None) -> list[ChainLink]:
    orders: list[list[ChainLink]] = []
    while path is not None:
        orders.append(path.order)
        path = path.earlier
    return list(chain.from_iterable(reversed(orders)))


def _extend_paths(paths: list[_Path], moment: ChainMoment, following: ChainMoment | None) -> list[_Path]:
    """The path with the fewest breaks to each balance that this moment can leave."""
    found: dict[Decimal | None, _Path] = {}
    for order in _orders(paths, moment, following):
        own_breaks, end = _breaks(order), order[-1].after
        for path in paths:
            breaks = path.breaks + own_breaks + (ChainStep(order[0], path.last).chain_break is not None)
            if end not in found or breaks < found[end].breaks:
                found[end] = _Path(breaks, order[-1], order, path)
    return list(found.values())


def _orders(
    paths: list[_Path], moment: ChainMoment, following: ChainMoment | None
) -> Iterator[list[ChainLink]]:
    """The orders to try: a landmark's own, otherwise one for every balance that the moment may start with."""
    if moment.is_landmark:
        yield moment.links
        return
    for start in _starts(paths, moment.links, following.links if following else []):
        yield in_order(moment.links, start)


def _breaks(order: list[ChainLink]) -> int:
    return sum(1 for one, other in pairwise(order) if one.after != other.before)


def _starts(paths: list[_Path], links: list[ChainLink], following: list[ChainLink]) -> list[Decimal]:
    """The balances its first link may start with: left by earlier links, or not led to by its own.

    If its links only form a circle, it may start with any balance that the following moment starts with.
    """
    previous_balances = {path.last.after for path in paths if path.last is not None}
    chosen = previous_balances | set(_surplus_starts(links)) | {one.before for one in following}
    balances = _balances(links)
    return [one for one in balances if one in chosen] or balances[:1]


def in_order(links: list[ChainLink], start: Decimal) -> list[ChainLink]:
    """Order the links so that each follows from the one before where possible, beginning with `start`.

    Links that cannot be reached from there begin at a balance that more links start with than lead to, or
    form a circle.
    """
    links_from: dict[Decimal | None, list[ChainLink]] = defaultdict(list)
    for one in reversed(links):
        links_from[one.before].append(one)
    order: list[ChainLink] = []
    for begin in (start, *_surplus_starts(links), *_balances(links)):
        order += _follow_links(links_from, begin)
    return order


def _surplus_starts(links: list[ChainLink]) -> list[Decimal]:
    """The balances that more of these links start with than lead to, sorted."""
    surplus = Counter(one.before for one in links)
    surplus.subtract(one.after for one in links)
    return [one for one in _balances(links) if surplus[one] > 0]


def _balances(links: list[ChainLink]) -> list[Decimal]:
    return sorted({one.before for one in links if one.before is not None})


def _follow_links(links_from: dict[Decimal | None, list[ChainLink]], start: Decimal) -> list[ChainLink]:
    """All links that can be reached from this balance, in order."""
    ordered: list[ChainLink] = []
    stack: list[tuple[Decimal | None, ChainLink | None]] = [(start, None)]
    while stack:
        balance, incoming = stack[-1]
        if links_from[balance]:
            link = links_from[balance].pop()
            stack.append((link.after, link))
        else:
            stack.pop()
            if incoming is not None:
                ordered.append(incoming)
    return ordered[::-1]
