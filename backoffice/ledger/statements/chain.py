"""The chain of balances: each record of a currency begins with the balance that the record before it left. Pure.

`balance_effect` is the one rule for what a record adds to the balance. Records of the same moment have no given
order; the order is the one in which each follows from the one before, if any exists (an Eulerian path, found by
Hierholzer's algorithm). So a break is reported only where no order of the records of one moment explains the balances.

A record without a balance before it, a direction or a time cannot be placed: its moment is not checked, and the chain
starts anew after it. It also starts anew after a landmark: a moment whose own balances determine its order, such as a
single record. Where no landmark comes for long, moments are left unchecked up to the next one, so that nobody ever has
to read far.
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
"""Records of one moment. Where there are more, the service tells no moments but days, and nothing is checked."""
MAX_RECORDS_WITHOUT_LANDMARK = 1_000
"""Records without a landmark. Behind so many the moments up to the next one are left unchecked."""


class ChainLink(NamedTuple):
    """A record as a part of the chain: the balance `before` and `after` it, both None where it cannot be placed."""

    pk: int
    at: datetime
    before: Decimal | None
    after: Decimal | None


class ChainBreak(NamedTuple):
    """Two records one behind the other that do not fit: a balance was expected, and another one found."""

    before: ChainLink
    after: ChainLink
    expected: Decimal
    found: Decimal

    @property
    def difference(self) -> Decimal:
        """What came in, or went out with a minus, that no record tells."""
        return EXACT.subtract(self.found, self.expected)


class ChainStep(NamedTuple):
    """A link at its place in the order, behind the one before it; None at the beginning of the history."""

    link: ChainLink
    previous: ChainLink | None

    @property
    def broken(self) -> ChainBreak | None:
        """Where it begins with another balance than the one before it left, as far as both are told."""
        if self.previous is None or self.previous.after is None or self.link.before is None:
            return None
        if self.previous.after == self.link.before:
            return None
        return ChainBreak(self.previous, self.link, self.previous.after, self.link.before)


class ChainMoment(NamedTuple):
    """All links that tell the same moment: in their order where their own balances tell it, otherwise by `pk`.

    Either all of them can be placed, or none. `is_landmark`: what it leaves does not depend on what came before, so
    that the chain can be taken up there.
    """

    links: list[ChainLink]
    is_landmark: bool


class Landmark(NamedTuple):
    """Where the chain was taken up: the last link there, and how many there are without one if it was given up."""

    last: ChainLink
    unsettled: int = 0


class ChainSegment(NamedTuple):
    """What is put in order together: up to a landmark, or to the end of the history where it is None."""

    steps: list[ChainStep]
    landmark: Landmark | None


@dataclass(frozen=True)
class _Path:
    """One way through the moments so far: how many breaks it has, and where it stands."""

    breaks: int
    last: ChainLink | None
    order: list[ChainLink]
    earlier: "_Path | None" = None


def balance_effect(direction: str, amount: Decimal, fee: Decimal | None) -> Decimal | None:
    """What a record adds to the balance, whatever its status: the fee comes on top, and what failed comes back later.

    None where nothing tells which way it went.
    """
    if direction not in {"in", "out"}:
        return None
    return EXACT.subtract(amount if direction == "in" else -amount, fee or Decimal(0))


def make_link(pk: int, at: datetime, before: Decimal | None, adds: Decimal | None) -> ChainLink:
    """The link of a record; one that cannot be placed has neither balance."""
    if before is None or adds is None:
        return ChainLink(pk, at, None, None)
    return ChainLink(pk, at, before, EXACT.add(before, adds))


def moments(links: Iterable[ChainLink]) -> Iterator[ChainMoment]:
    """The links by their moments; they come in order of time and `pk`."""
    for _, group in groupby(links, key=lambda one: one.at):
        yield _moment(list(group))


def landmarks(
    history: Iterable[ChainMoment], unsettled: int = 0
) -> Iterator[tuple[ChainMoment, Landmark | None]]:
    """The moments, each with the landmark that it is, if it is one.

    `unsettled` is how many links without one came before; behind too many of them moments are given up, and each of
    these is one. So what a moment is depends on so many links before it and on no others.
    """
    for moment in history:
        unsettled = 0 if moment.is_landmark else unsettled + len(moment.links)
        one = _unplaced(moment.links) if unsettled > MAX_RECORDS_WITHOUT_LANDMARK else moment
        yield one, Landmark(one.links[-1], unsettled) if one.is_landmark else None


def lookback_limit() -> int:
    """Of so many links in a row, wherever they begin, enough are whole moments to see the last landmark."""
    return MAX_RECORDS_WITHOUT_LANDMARK + MAX_RECORDS_PER_MOMENT + 1


def last_landmark(links: list[ChainLink], *, is_all: bool) -> Landmark | None:
    """The last one in these, which are some of the history if not all; None if it cannot be seen in them."""
    history = list(moments(links))
    if not is_all and history[0].links[0].after is not None:
        del history[0]  # more of it may lie further back; what cannot be placed is no other for that
    found = [landmark for _, landmark in landmarks(history) if landmark]
    return found[-1] if found else None


def walk(history: Iterable[ChainMoment], landmark: Landmark | None = None) -> Iterator[ChainSegment]:
    """The history behind this landmark, or all of it, cut behind every landmark: each stretch has its own order."""
    previous, unsettled = landmark or (None, 0)
    stretch: list[ChainMoment] = []
    for moment, here in landmarks(history, unsettled):
        stretch.append(moment)
        if here is not None:
            yield ChainSegment(steps(stretch, previous), here)
            previous, stretch = here.last, []
    if stretch:
        yield ChainSegment(steps(stretch, previous), None)


def steps(stretch: list[ChainMoment], previous: ChainLink | None) -> list[ChainStep]:
    """The links of one stretch in the order with the fewest breaks, behind the link of the landmark before it."""
    order = (
        stretch[0].links if len(stretch) == 1 and stretch[0].is_landmark else _best_order(stretch, previous)
    )
    return list(map(ChainStep, order, chain([previous], order)))


def breaks_in(steps: list[ChainStep]) -> list[ChainBreak]:
    """Where they do not fit."""
    return [broken for step in steps if (broken := step.broken)]


def _moment(links: list[ChainLink]) -> ChainMoment:
    if len(links) == 1:
        return ChainMoment(links, is_landmark=True)
    if len(links) > MAX_RECORDS_PER_MOMENT or any(one.after is None for one in links):
        return _unplaced(links)
    begun = _surplus_starts(links)
    order = in_order(links, begun[0]) if begun else links
    is_told = bool(begun) and not _breaks(order)
    return ChainMoment(order if is_told else links, is_landmark=is_told)


def _unplaced(links: list[ChainLink]) -> ChainMoment:
    return ChainMoment([ChainLink(one.pk, one.at, None, None) for one in links], is_landmark=True)


def _best_order(stretch: list[ChainMoment], previous: ChainLink | None) -> list[ChainLink]:
    courses = [_Path(0, previous, [])]
    for moment, following in zip_longest(stretch, stretch[1:]):
        courses = _extend_paths(courses, moment, following)
    return _links_of_path(min(courses, key=lambda course: course.breaks))


def _links_of_path(course: _Path | None) -> list[ChainLink]:
    orders: list[list[ChainLink]] = []
    while course is not None:
        orders.append(course.order)
        course = course.earlier
    return list(chain.from_iterable(reversed(orders)))


def _extend_paths(courses: list[_Path], moment: ChainMoment, following: ChainMoment | None) -> list[_Path]:
    """The best course to each balance that this moment can leave."""
    found: dict[Decimal | None, _Path] = {}
    for order in _orders(courses, moment, following):
        inside, end = _breaks(order), order[-1].after
        for course in courses:
            breaks = course.breaks + inside + (ChainStep(order[0], course.last).broken is not None)
            if end not in found or breaks < found[end].breaks:
                found[end] = _Path(breaks, order[-1], order, course)
    return list(found.values())


def _orders(
    courses: list[_Path], moment: ChainMoment, following: ChainMoment | None
) -> Iterator[list[ChainLink]]:
    """Those that are tried: of a landmark its own, of others from every balance that it may begin with."""
    if moment.is_landmark:
        yield moment.links
        return
    for start in _starts(courses, moment.links, following.links if following else []):
        yield in_order(moment.links, start)


def _breaks(order: list[ChainLink]) -> int:
    return sum(1 for one, other in pairwise(order) if one.after != other.before)


def _starts(courses: list[_Path], links: list[ChainLink], following: list[ChainLink]) -> list[Decimal]:
    """The balances that its first link may begin with: those that were left, and those that nothing in it leads to.

    Where it only leads round in a circle, it may begin wherever the following one goes on.
    """
    left = {course.last.after for course in courses if course.last is not None}
    chosen = left | set(_surplus_starts(links)) | {one.before for one in following}
    balances = _balances(links)
    return [one for one in balances if one in chosen] or balances[:1]


def in_order(links: list[ChainLink], start: Decimal) -> list[ChainLink]:
    """These so that each follows from the one before, as far as any order can: the first begins with `start`.

    What cannot be reached from there begins where more of them begin than lead to, or goes round in a circle.
    """
    leading: dict[Decimal | None, list[ChainLink]] = defaultdict(list)
    for one in reversed(links):
        leading[one.before].append(one)
    order: list[ChainLink] = []
    for begin in (start, *_surplus_starts(links), *_balances(links)):
        order += _follow_links(leading, begin)
    return order


def _surplus_starts(links: list[ChainLink]) -> list[Decimal]:
    """The balances that more of these begin with than lead to, in order."""
    surplus = Counter(one.before for one in links)
    surplus.subtract(one.after for one in links)
    return [one for one in _balances(links) if surplus[one] > 0]


def _balances(links: list[ChainLink]) -> list[Decimal]:
    return sorted({one.before for one in links if one.before is not None})


def _follow_links(leading: dict[Decimal | None, list[ChainLink]], start: Decimal) -> list[ChainLink]:
    """All links that can be reached from there, one behind the other."""
    trail: list[ChainLink] = []
    open_ends: list[tuple[Decimal | None, ChainLink | None]] = [(start, None)]
    while open_ends:
        balance, link_to_it = open_ends[-1]
        if leading[balance]:
            taken = leading[balance].pop()
            open_ends.append((taken.after, taken))
        else:
            open_ends.pop()
            if link_to_it is not None:
                trail.append(link_to_it)
    return trail[::-1]
