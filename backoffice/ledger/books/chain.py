"""The chain of balances: every record of a currency begins with the balance that the one before it left. Pure.

What a record does to the balance is one rule, `effect`. Where records tell the same moment, nothing tells their order
but the balances themselves: then the order is the one in which each follows from the one before, if there is any such
order (a path that takes every record once, found as Hierholzer found it). So a break is told only where no order of
the records of one moment explains the balances.

A record that tells no balance before it, no direction or no time cannot be placed. Its moment is left unchecked, and
the chain begins anew behind it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain, groupby, pairwise
from typing import NamedTuple, TypeAlias

from backoffice.ledger.mirror.totals import EXACT

MOST_AT_ONCE = 200
"""Records of one moment. Where there are more, the service tells no moments but days, and nothing is checked."""


class Link(NamedTuple):
    """A record as a part of the chain: the balance `before` and `after` it, both None where it cannot be placed."""

    pk: int
    at: datetime
    before: Decimal | None
    after: Decimal | None


class Broken(NamedTuple):
    """Two records one behind the other that do not fit: a balance was expected, and another one found."""

    before: Link
    after: Link
    expected: Decimal
    found: Decimal

    @property
    def difference(self) -> Decimal:
        """What came in, or went out with a minus, that no record tells."""
        return EXACT.subtract(self.found, self.expected)


class Step(NamedTuple):
    """A link at its place in the order, behind the one before it; None at the beginning of the history."""

    link: Link
    previous: Link | None

    @property
    def broken(self) -> Broken | None:
        """Where it begins with another balance than the one before it left, as far as both are told."""
        if self.previous is None or self.previous.after is None or self.link.before is None:
            return None
        if self.previous.after == self.link.before:
            return None
        return Broken(self.previous, self.link, self.previous.after, self.link.before)


Moment: TypeAlias = list[Link]
"""All links that tell the same moment, by `pk`. Either all of them can be placed, or none."""


@dataclass(frozen=True)
class _Course:
    """One way through the moments so far: how many breaks it has, and where it stands."""

    breaks: int
    last: Link | None
    order: list[Link]
    earlier: "_Course | None" = None


def effect(direction: str, amount: Decimal, fee: Decimal | None) -> Decimal | None:
    """What a record adds to the balance, whatever its status: the fee comes on top, and what failed comes back later.

    None where nothing tells which way it went.
    """
    if direction not in {"in", "out"}:
        return None
    return EXACT.subtract(amount if direction == "in" else -amount, fee or Decimal(0))


def link(pk: int, at: datetime, before: Decimal | None, adds: Decimal | None) -> Link:
    """The link of a record; one that cannot be placed has neither balance."""
    if before is None or adds is None:
        return Link(pk, at, None, None)
    return Link(pk, at, before, EXACT.add(before, adds))


def moments(links: Iterable[Link]) -> Iterator[Moment]:
    """The links by their moments; they come in order of time and `pk`."""
    for at, group in groupby(links, key=lambda one: one.at):
        moment = list(group)
        is_placed = len(moment) <= MOST_AT_ONCE and all(one.after is not None for one in moment)
        yield moment if is_placed else [Link(one.pk, at, None, None) for one in moment]


def is_landmark(moment: Moment) -> bool:
    """Whether what it leaves does not depend on what came before: here the chain can be taken up anywhere."""
    return len(moment) == 1 or moment[0].after is None


def stretches(history: Iterable[Moment]) -> Iterator[list[Moment]]:
    """The moments, cut behind every landmark: each stretch can be put in order by itself."""
    stretch: list[Moment] = []
    for moment in history:
        stretch.append(moment)
        if is_landmark(moment):
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def steps(stretch: list[Moment], previous: Link | None) -> list[Step]:
    """The links of one stretch in the order with the fewest breaks, behind the link of the landmark before it."""
    if len(stretch) == 1 and len(stretch[0]) == 1:  # as nearly all are
        [only] = stretch[0]
        return [Step(only, previous)]
    courses = [_Course(0, previous, [])]
    for moment, following in pairwise([*stretch, []]):
        courses = _further(courses, moment, following)
    told: list[Step] = []
    for one in _links(min(courses, key=lambda course: course.breaks)):
        told.append(Step(one, previous))
        previous = one
    return told


def ends_at_landmark(steps: list[Step]) -> bool:
    """Whether what follows can be put in order by itself: so it is behind every stretch but perhaps the last."""
    last = steps[-1].link
    return last.after is None or len(steps) == 1 or steps[-2].link.at != last.at


def broken_of(steps: list[Step]) -> list[Broken]:
    """Where they do not fit."""
    return [broken for step in steps if (broken := step.broken)]


def _links(course: _Course | None) -> list[Link]:
    orders: list[list[Link]] = []
    while course is not None:
        orders.append(course.order)
        course = course.earlier
    return list(chain.from_iterable(reversed(orders)))


def _further(courses: list[_Course], moment: Moment, following: Moment) -> list[_Course]:
    """The best course to each balance that this moment can leave."""
    if moment[0].after is None:
        best = min(courses, key=lambda course: course.breaks)
        return [_Course(best.breaks, moment[-1], moment, best)]
    found: dict[Decimal | None, _Course] = {}
    for start in _starts(courses, moment, following):
        order = in_order(moment, start)
        inside = sum(1 for one, other in pairwise(order) if one.after != other.before)
        for course in courses:
            breaks = course.breaks + inside + (Step(order[0], course.last).broken is not None)
            end = order[-1].after
            if end not in found or breaks < found[end].breaks:
                found[end] = _Course(breaks, order[-1], order, course)
    return list(found.values())


def _starts(courses: list[_Course], moment: Moment, following: Moment) -> list[Decimal]:
    """The balances that its first link may begin with: those that were left, and those that nothing in it leads to.

    Where it only leads round in a circle, it may begin wherever the following one goes on.
    """
    left = {course.last.after for course in courses if course.last is not None}
    begun = Counter(one.before for one in moment)
    begun.subtract(one.after for one in moment)
    going_on = {one.before for one in following}
    balances = sorted({one.before for one in moment if one.before is not None})
    chosen = [one for one in balances if one in left or begun[one] > 0 or one in going_on]
    return chosen or balances[:1]


def in_order(moment: Moment, start: Decimal) -> list[Link]:
    """Its links so that each follows from the one before, as far as any order can: the first begins with `start`."""
    leading: dict[Decimal | None, list[Link]] = defaultdict(list)
    for one in reversed(moment):
        leading[one.before].append(one)
    order: list[Link] = []
    begin: Decimal | None = start
    while begin is not None:
        order += _trail(leading, begin)
        begin = _next_start(leading)
    return order


def _next_start(leading: dict[Decimal | None, list[Link]]) -> Decimal | None:
    """Where the links that are left begin best: where fewer lead to than begin."""
    surplus = Counter({before: len(links) for before, links in leading.items() if links})
    balances = sorted(before for before in surplus if before is not None)
    for links in leading.values():
        surplus.subtract(one.after for one in links)
    return next((one for one in balances if surplus[one] > 0), balances[0] if balances else None)


def _trail(leading: dict[Decimal | None, list[Link]], start: Decimal) -> list[Link]:
    """All links that can be reached from there, one behind the other."""
    trail: list[Link] = []
    open_ends: list[tuple[Decimal | None, Link | None]] = [(start, None)]
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
