"""Which rule decides a described operation, and whose approvals are still needed: pure functions, the one place.

Nothing here reads a database or a clock, so the answer is the same on both engines, at every moment and in a replay.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from backoffice.policies.document import (
    AmountBand,
    Conditions,
    Currencies,
    Hours,
    Level,
    Levels,
    People,
    PolicyDocument,
    RecipientIs,
    Rule,
    TotalAbove,
    TotalOf,
    Window,
    approvals_in,
)


@dataclass(frozen=True)
class Person:
    """A person, with everything that the evaluation of a policy depends on."""

    id: int
    name: str
    roles: frozenset[str] = frozenset()
    groups: frozenset[int] = frozenset()
    is_active: bool = True
    may_approve: bool = True  # by a role
    is_withheld: bool = False  # a recent change of the account withholds the permission
    is_on_leave: bool = False
    stand_in_id: int | None = None  # who approved for this person, of an approval that was given


@dataclass(frozen=True)
class RecipientFacts:
    """What is known of the recipient of an operation."""

    key: str
    is_new: bool = False
    is_saved: bool = False
    is_provider_user: bool = False
    is_look_alike: bool = False
    network: str = ""


Totals = Mapping[tuple[Window, TotalOf], Decimal]


@dataclass(frozen=True)
class DescribedOperation:
    """Everything that conditions of rules compare, as it was when the operation was prepared; the preparer as of now.

    `totals` include the operation itself. What changes Countersign only, such as a policy, is not `refusable`: a rule
    could otherwise refuse its own correction.
    """

    kind: str
    preparer: Person
    at: datetime
    currency: str = ""
    amount: Decimal | None = None
    recipient: RecipientFacts | None = None
    rows: int = 1
    totals: Totals = field(default_factory=lambda: MappingProxyType({}))
    refusable: bool = True


class Condition(TextChoices):
    """Which condition of a rule does not fit."""

    KIND = "kind", _("different kind")
    CURRENCY = "currency", _("different currency")
    AMOUNT = "amount", _("the amount is outside the range")
    RECIPIENT = "recipient", _("different recipient")
    LIST = "list", _("the recipient is not on the list")
    NETWORK = "network", _("different network")
    PREPARER = "preparer", _("different preparer")
    TOTAL = "total", _("the total is not above the limit")
    HOURS = "hours", _("different time")
    ROWS = "rows", _("the batch does not have more rows than the limit")
    REFUSABLE = "refusable", _("changes to Countersign itself are never refused")


@dataclass(frozen=True)
class Decision:
    """The rule that decides, and its number from 1; the last rule has the number after all others."""

    number: int
    rule: Rule


Check = tuple[Condition, Callable[[DescribedOperation], bool]]


class Evaluator:
    """A document, prepared for deciding about many operations."""

    def __init__(self, document: PolicyDocument) -> None:
        lists = {each.name: frozenset(each.keys) for each in document.lists}
        zone = ZoneInfo(document.time_zone)
        self._rules = [(rule, list(_checks(rule, lists, zone))) for rule in document.all_rules]

    def decide(self, operation: DescribedOperation) -> Decision:
        """The first rule that fits. The last rule fits everything."""
        for number, (rule, checks) in enumerate(self._rules, start=1):
            if all(fits(operation) for _, fits in checks):
                return Decision(number, rule)
        raise AssertionError("the last rule fits everything")

    def fitting(self, operation: DescribedOperation, conditions: Collection[Condition]) -> int:
        """The rules that fit the operation as far as these conditions go, as bits: the first rule is the lowest."""
        bits = 0
        for place, rule in enumerate(self._rules):
            if all(fits(operation) for condition, fits in rule[1] if condition in conditions):
                bits |= 1 << place
        return bits

    def asking(self, conditions: Collection[Condition]) -> int:
        """The rules that have one of these conditions, as bits."""
        return sum(
            1 << place
            for place, rule in enumerate(self._rules)
            if any(condition in conditions for condition, _ in rule[1])
        )

    def misses(self, operation: DescribedOperation) -> list[list[Condition]]:
        """Of each rule before the one that decides, the conditions that do not fit."""
        before = self._rules[: self.decide(operation).number - 1]
        return [[condition for condition, fits in checks if not fits(operation)] for _, checks in before]


def decide(document: PolicyDocument, operation: DescribedOperation) -> Decision:
    """The first rule of this document that fits."""
    return Evaluator(document).decide(operation)


def never_permitted(document: PolicyDocument, kinds: Iterable[str]) -> list[str]:
    """Those of these kinds of which every payment is refused: by a rule without another condition, before any rule that
    could permit one.
    """
    return [kind for kind in kinds if _is_never_permitted(document, kind)]


def _is_never_permitted(document: PolicyDocument, kind: str) -> bool:
    for rule in document.rules:
        if rule.when.kinds and kind not in rule.when.kinds:
            continue
        if not rule.refuse:
            return False
        if _fits_every_payment(rule.when.model_copy(update={"kinds": ()})):
            return True
    return False


def _fits_every_payment(when: Conditions) -> bool:
    """Whether these conditions exclude no payment: there are none, or any currency, all times, or at least one row."""
    is_any_currency = when.currencies is None or when.currencies == Currencies(other_than=True)
    hours, whole_week = when.hours, Hours()
    is_always = hours is None or (
        set(hours.weekdays) == set(whole_week.weekdays)
        and (hours.start, hours.end, hours.outside) == (whole_week.start, whole_week.end, whole_week.outside)
    )
    left = when.model_copy(update={"currencies": None, "hours": None, "more_rows_than": None})
    return is_any_currency and is_always and not when.more_rows_than and left == Conditions()


def _checks(rule: Rule, lists: Mapping[str, frozenset[str]], zone: ZoneInfo) -> Iterator[Check]:
    """The conditions that the rule has, those that are checked fastest first."""
    if rule.when.kinds:
        yield Condition.KIND, lambda operation: operation.kind in rule.when.kinds
    if rule.when.currencies:
        yield Condition.CURRENCY, partial(_is_currency, rule.when.currencies)
    if rule.when.amount:
        yield Condition.AMOUNT, partial(_is_in_band, rule.when.amount)
    if rule.when.more_rows_than is not None:
        yield Condition.ROWS, lambda operation: operation.rows > (rule.when.more_rows_than or 0)
    if rule.refuse:
        yield Condition.REFUSABLE, lambda operation: operation.refusable
    yield from _checks_of_people_and_times(rule.when, lists, zone)


def _checks_of_people_and_times(
    when: Conditions, lists: Mapping[str, frozenset[str]], zone: ZoneInfo
) -> Iterator[Check]:
    if when.recipient:
        yield Condition.RECIPIENT, partial(_is_recipient, when.recipient)
    if when.on_list:
        yield Condition.LIST, partial(_is_listed, lists[when.on_list])
    if when.networks:
        yield Condition.NETWORK, partial(_is_on_network, frozenset(when.networks))
    if when.preparer:
        yield Condition.PREPARER, partial(_is_prepared_by, when.preparer)
    if when.total:
        yield Condition.TOTAL, partial(_is_total_above, when.total)
    if when.hours:
        yield Condition.HOURS, partial(_is_prepared_at, when.hours, zone)


def _is_currency(currencies: Currencies, operation: DescribedOperation) -> bool:
    is_named = operation.currency in currencies.codes
    return bool(operation.currency) and is_named != currencies.other_than


def _is_in_band(band: AmountBand, operation: DescribedOperation) -> bool:
    amount = operation.amount
    return (
        amount is not None
        and (band.above is None or amount > band.above)
        and (band.up_to is None or amount <= band.up_to)
    )


_RECIPIENT_IS: Mapping[RecipientIs, Callable[[RecipientFacts], bool]] = {
    RecipientIs.NEW: lambda recipient: recipient.is_new,
    RecipientIs.PAID_BEFORE: lambda recipient: not recipient.is_new,
    RecipientIs.SAVED: lambda recipient: recipient.is_saved,
    RecipientIs.NOT_SAVED: lambda recipient: not recipient.is_saved,
    RecipientIs.PROVIDER_USER: lambda recipient: recipient.is_provider_user,
    RecipientIs.LOOK_ALIKE: lambda recipient: recipient.is_look_alike,
}


def _is_recipient(wanted: RecipientIs, operation: DescribedOperation) -> bool:
    return operation.recipient is not None and _RECIPIENT_IS[wanted](operation.recipient)


def _is_listed(keys: frozenset[str], operation: DescribedOperation) -> bool:
    return operation.recipient is not None and operation.recipient.key in keys


def _is_on_network(networks: frozenset[str], operation: DescribedOperation) -> bool:
    return operation.recipient is not None and operation.recipient.network in networks


def _is_prepared_by(people: People, operation: DescribedOperation) -> bool:
    return is_among(operation.preparer, people)


def _is_total_above(limit: TotalAbove, operation: DescribedOperation) -> bool:
    total = operation.totals.get((limit.window, limit.of))
    return total is not None and total > limit.above


def _is_prepared_at(hours: Hours, zone: ZoneInfo, operation: DescribedOperation) -> bool:
    return is_at(hours, operation.at.astimezone(zone))


def is_at(hours: Hours, local: datetime) -> bool:
    """Whether the hours include this local time."""
    moment, weekday = local.time(), local.weekday()
    is_before_end = hours.end is None or moment < hours.end
    if hours.are_over_midnight:
        begins, ends = (day in hours.weekdays for day in (weekday, (weekday - 1) % 7))
        inside = (begins and hours.start <= moment) or (ends and is_before_end)
    else:
        inside = weekday in hours.weekdays and hours.start <= moment and is_before_end
    return inside != hours.outside


def is_among(person: Person, people: People) -> bool:
    """Whether the person has the role, is in the group, or is named; always if everyone is meant."""
    if people.role:
        return people.role in person.roles
    if people.group:
        return people.group.id in person.groups
    return not people.named or any(one.id == person.id for one in people.named)


def stricter(first: Levels, second: Levels) -> Levels:
    """Levels that satisfy both: as few approvals as that needs, the first's order before the second's."""
    both = (_with_the_rest(first, second), _with_the_rest(second, first))
    return min(both, key=lambda levels: (approvals_in(levels), len(levels)))


def _with_the_rest(levels: Levels, others: Levels) -> Levels:
    """These levels, and what the others need beyond them."""
    spare = [level.needed for level in levels]
    rest: list[Level] = []
    for other in sorted(
        others, key=lambda level: level.of.is_everyone
    ):  # everyone can be satisfied by any level
        missing = other.needed
        for exact in (True, False):
            for place, level in enumerate(levels):
                if level.of == other.of if exact else other.of.is_everyone:
                    used = min(missing, spare[place])
                    spare[place] -= used
                    missing -= used
        if missing:
            rest.append(Level(needed=missing, of=other.of))
    return (*levels, *rest)


def requires_less(old: Levels, new: Levels) -> bool:
    """Whether the new levels can be complete while the old ones lack an approval: fewer are needed, or of others.

    The names of people and groups do not matter, only who they are. Nor does the order of the levels.
    """
    before, after = ([_without_names(level) for level in levels] for levels in (old, new))
    return len(_with_the_rest(tuple(after), tuple(before))) > len(after)


def _without_names(level: Level) -> Level:
    of = level.of
    group = of.group and of.group.model_copy(update={"name": ""})
    named = [one.model_copy(update={"name": ""}) for one in sorted(of.named, key=lambda one: one.id)]
    return level.model_copy(update={"of": of.model_copy(update={"group": group, "named": tuple(named)})})


def strictest(decisions: Iterable[Decision]) -> Decision:
    """Of the decisions on the parts of one operation: the first that refuses, otherwise one by whose levels all are
    satisfied, under the rule that requires the most approvals.
    """
    found = list(decisions)
    refusal = next((one for one in found if one.rule.refuse), None)
    if refusal:
        return refusal
    most = max(found, key=lambda one: approvals_in(one.rule.levels))  # the first of equals
    levels = most.rule.levels
    for one in found:
        levels = stricter(levels, one.rule.levels)
    if levels == most.rule.levels:
        return most
    return Decision(most.number, most.rule.model_copy(update={"levels": levels}))


@dataclass(frozen=True)
class LevelProgress:
    """Who of the approvers counts for this level, in the order of their approvals."""

    level: Level
    given: tuple[int, ...]

    @property
    def missing(self) -> int:
        return self.level.needed - len(self.given)


@dataclass(frozen=True)
class Progress:
    """How far the levels are, in their order."""

    levels: tuple[LevelProgress, ...]

    @property
    def open(self) -> LevelProgress | None:
        """The first level that is not complete; None if all are."""
        return next((one for one in self.levels if one.missing), None)

    @property
    def is_complete(self) -> bool:
        return self.open is None

    @property
    def missing(self) -> int:
        return sum(one.missing for one in self.levels)


def progress(levels: Levels, approvers: Iterable[Person], *, preparer_id: int) -> Progress:
    """How far these people's approvals, in their order, complete the levels.

    Each counts once, for the first level that is not complete and that the person belongs to; the preparer's never
    does. A stand-in's approval counts as that of the person on leave, and neither of both counts again. No approval
    counts for a later level while an earlier one is open.
    """
    unused, used = [], {preparer_id}
    for one in approvers:
        people = {one.id} if one.stand_in_id is None else {one.id, one.stand_in_id}
        if not people & used:
            unused.append(one)
            used |= people
    found: list[LevelProgress] = []
    for level in levels:
        is_open = any(one.missing for one in found)
        counted = [] if is_open else [one for one in unused if is_among(one, level.of)][: level.needed]
        unused = [one for one in unused if one not in counted]
        found.append(LevelProgress(level, tuple(one.id for one in counted)))
    return Progress(tuple(found))


class Hindrance(TextChoices):
    """Why a person cannot approve now. The label is the text, with its parameter in braces."""

    PREPARED = "prepared", _("prepared it")
    APPROVED = "approved", _("approved already")
    DEACTIVATED = "deactivated", _("deactivated")
    NO_PERMISSION = "no_permission", _("no permission to approve")
    WITHHELD = "withheld", _("must wait up to {hours} hours (new account, rights or second factor)")
    ON_LEAVE = "on_leave", _("on leave")
    AFFECTED = "affected", _("the operation changes this person's rights")
    NOT_IN_LEVEL = "not_in_level", _("not in the current level")


def hindrance(
    person: Person,
    level: Level,
    *,
    preparer_id: int,
    approved: Collection[int],
    affected: Collection[int] = (),
) -> Hindrance | None:
    """Why this person cannot approve at this level now; None if nothing prevents it.

    `approved` are those who approved it, and those for whom somebody did; `affected`, those whose rights it changes.
    """
    reasons = (
        (person.id == preparer_id, Hindrance.PREPARED),
        (person.id in approved, Hindrance.APPROVED),
        (not person.is_active, Hindrance.DEACTIVATED),
        (not person.may_approve, Hindrance.NO_PERMISSION),
        (person.is_withheld, Hindrance.WITHHELD),
        (person.is_on_leave, Hindrance.ON_LEAVE),
        (person.id in affected, Hindrance.AFFECTED),
        (not is_among(person, level.of), Hindrance.NOT_IN_LEVEL),
    )
    return next((reason for applies, reason in reasons if applies), None)


@dataclass(frozen=True)
class Leave:
    """One person is on leave, and another one of the same group approves for that person, if already allowed to."""

    away: int
    stand_in: int
    group: int
    can_act: bool = True


@dataclass(frozen=True)
class Capacity:
    """Whether a person can approve now: why not, or in whose place; in the person's own right if both are None."""

    hindrance: Hindrance | None = None
    in_place_of: Person | None = None


def capacity(
    person: Person,
    level: Level,
    *,
    people: Mapping[int, Person],
    leaves: Iterable[Leave],
    preparer_id: int,
    approved: Collection[int],
    affected: Collection[int] = (),
) -> Capacity:
    """Whether this person can approve at this level now, in the own right or for somebody on leave.

    A stand-in needs what every approver needs but the level itself; the person on leave must be able to approve but
    for the leave. There is no chain: a stand-in on leave has no stand-in for this.
    """
    terms: dict[str, Any] = {"preparer_id": preparer_id, "approved": approved, "affected": affected}
    own = hindrance(person, level, **terms)
    if own is not Hindrance.NOT_IN_LEVEL:
        return Capacity(own)
    for leave in leaves:
        away = people.get(leave.away)
        if away is None or leave.stand_in != person.id or not leave.can_act or away.id == person.id:
            continue
        if leave.group not in person.groups & away.groups:
            continue
        if hindrance(replace(away, is_on_leave=False), level, **terms) is None:
            return Capacity(in_place_of=away)
    return Capacity(own)


def can_be_satisfied(levels: Levels, approvers: Collection[Person]) -> bool:
    """Whether different people among these can take all the places that the levels have."""
    seats = [level.of for level in levels for _ in range(level.needed)]
    taken: dict[int, int] = {}

    def seat_somebody(seat: int, tried: set[int]) -> bool:
        for person in approvers:
            if person.id in tried or not is_among(person, seats[seat]):
                continue
            tried.add(person.id)
            if person.id not in taken or seat_somebody(taken[person.id], tried):
                taken[person.id] = seat
                return True
        return False

    return all(seat_somebody(seat, set()) for seat in range(len(seats)))
