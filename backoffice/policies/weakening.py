"""What a version of the policies requires less than the one in effect, whatever was prepared until now: pure functions.

Operations are made up from the conditions of both versions: every kind, each currency of a rule, an amount between
every two limits, and recipients, preparers, times and batches that differ in a condition. Both versions decide each
of them. The rules that fit each such value are evaluated once, as bits; the rules that fit an operation are the
intersection.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations, islice, product
from math import prod
from typing import Any
from zoneinfo import ZoneInfo

from backoffice.core.fields import EXACT
from backoffice.policies.document import (
    Conditions,
    Hours,
    Levels,
    People,
    PolicyDocument,
    RecipientIs,
    Rule,
    TotalAbove,
    TotalOf,
    Window,
)
from backoffice.policies.evaluator import (
    Condition,
    Decision,
    DescribedOperation,
    Evaluator,
    Person,
    RecipientFacts,
    Totals,
    is_at,
    requires_less,
    strictest,
)

OTHER_CURRENCY = "other"
"""Stands for every currency that no rule names."""

_BY_KIND = frozenset({Condition.KIND, Condition.REFUSABLE})
_BY_AMOUNT = frozenset({Condition.CURRENCY, Condition.AMOUNT})
_BY_RECIPIENT = frozenset({Condition.RECIPIENT, Condition.LIST, Condition.NETWORK})
_BY_PREPARER, _BY_TIME = frozenset({Condition.PREPARER}), frozenset({Condition.HOURS})
_BY_ROWS, _BY_TOTALS = frozenset({Condition.ROWS}), frozenset({Condition.TOTAL})
_MOST_WORK = 100_000  # combinations: less than half a second
_MOST_COMBINED = 2_000
_MOST_VALUES = 250
_MOST_TOTALS = 12
_MONDAY, _SUMMER_MONDAY = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 7, 1, tzinfo=UTC)
"""Of weeks in which few clocks change, with and without summer time."""


@dataclass(frozen=True)
class KindFacts:
    """What operations of a kind can have.

    `decided_as` are the names under all of which one operation is decided at once, so that the strictest decision
    counts; several of these if there are several sorts of such operations.
    """

    name: str
    decided_as: tuple[tuple[str, ...], ...]
    has_amount: bool = False
    has_recipient: bool = False
    has_rows: bool = False
    is_refusable: bool = True


@dataclass(frozen=True)
class Band:
    """Amounts of a currency above the one and up to the other, None for no limit; without a currency, everything."""

    currency: str = ""
    above: Decimal | None = None
    up_to: Decimal | None = None


@dataclass(frozen=True)
class Witness:
    """An operation of which the new version requires less, under these names of kinds, with both decisions."""

    kind: str
    band: Band
    operations: tuple[DescribedOperation, ...]
    old: Decision
    new: Decision


@dataclass(frozen=True)
class Weaker:
    """Where the new version requires less: operations of these kinds and bands that a rule of each version decides."""

    old: Decision
    new: Decision
    kinds: tuple[str, ...]
    bands: tuple[Band, ...]  # those of all kinds, or of every amount, are one band without a currency


@dataclass(frozen=True)
class Weakening:
    """All of it, in the order of the new rules. It is cut if the versions are too large to compare all of them."""

    found: tuple[Weaker, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    is_cut: bool = False


def weakening(old: PolicyDocument, new: PolicyDocument, kinds: Sequence[KindFacts]) -> Weakening:
    """Where the new version requires less than the old one of operations of these kinds."""
    if (old.rules, old.lists, old.time_zone) == (new.rules, new.lists, new.time_zone):
        return Weakening()
    search = _Search(old, new)
    witnesses = [one for kind in kinds for one in search.of_kind(kind)]
    return Weakening(tuple(_grouped(witnesses, search.bands)), tuple(witnesses), search.is_cut)


_Found = dict[tuple[int, int], tuple[tuple[DescribedOperation, ...], Decision, Decision]]
"""Operations and both decisions for each pair of rules, old and new, by which less is required."""
_Bits = tuple[int, int]
"""Rules of the old and of the new version, as bits."""
_Outcome = tuple[bool, Levels]
_Outcomes = tuple[int, int, _Outcome, _Outcome]
"""The numbers of the new and the old rule, and what they require: of several names at once, the levels are merged."""


class _Search:
    """Both versions, with the rules that fit each kind, each band of amounts, and each value of other conditions.

    The first of the rules that fit all of these is the one that decides.
    """

    def __init__(self, old: PolicyDocument, new: PolicyDocument) -> None:
        self.documents = (old, new)
        self.bands = _bands(self.documents)
        self.is_cut = False
        self._evaluators = (Evaluator(old), Evaluator(new))
        self._left = _MOST_WORK
        whens = [(document.time_zone, rule.when) for document in self.documents for rule in document.rules]
        self._limits = list(dict.fromkeys(when.total for _, when in whens if when.total))
        every = [Band(), *(band for each in self.bands.values() for band in each)]
        self._by_band = {band: self._fitting(_at(band), _BY_AMOUNT) for band in every}
        self._recipients = self._values("recipient", [None, *_recipients(self.documents)], _BY_RECIPIENT)
        self._others = [
            self._values("preparer", _preparers(when.preparer for _, when in whens), _BY_PREPARER),
            self._values("at", _times({(when.hours, zone) for zone, when in whens if when.hours}), _BY_TIME),
        ]
        self._rows = self._values("rows", _rows(when for _, when in whens), _BY_ROWS)
        self._uncertain = self._asking(frozenset(Condition) - _BY_KIND - _BY_AMOUNT)
        self._with_totals = self._asking(_BY_TOTALS)
        self._known: dict[Any, _Found] = {}
        self._less: dict[tuple[_Outcome, _Outcome], bool] = {}
        self._strictest: dict[tuple[int, ...], Decision] = {}

    def _fitting(self, operation: DescribedOperation, conditions: Collection[Condition]) -> _Bits:
        old, new = (one.fitting(operation, conditions) for one in self._evaluators)
        return old, new

    def _asking(self, conditions: Collection[Condition]) -> _Bits:
        old, new = (one.asking(conditions) for one in self._evaluators)
        return old, new

    def _values(
        self, name: str, values: Iterable[Any], conditions: Collection[Condition], base: Band | None = None
    ) -> list[tuple[_Bits, dict[str, Any]]]:
        """Values of this member of an operation, each with the rules that fit it."""
        plain = _at(base or Band())
        found = list(islice(values, _MOST_VALUES + 1))
        self.is_cut |= len(found) > _MOST_VALUES
        return [
            (self._fitting(replace(plain, **{name: value}), conditions), {name: value})
            for value in found[:_MOST_VALUES]
        ]

    def of_kind(self, kind: KindFacts) -> Iterator[Witness]:
        by_name = {
            name: self._fitting(replace(_at(Band(), name), refusable=kind.is_refusable), _BY_KIND)
            for names in kind.decided_as
            for name in names
        }
        for band, by_band in self._by_band.items():
            if bool(band.currency) != kind.has_amount:
                continue
            seen: set[_Outcomes] = set()
            for names in kind.decided_as:
                rules = tuple(self._that_can_decide(by_name[name], by_band) for name in names)
                for operations, old, new in self._of_band(kind, names, rules, band).values():
                    outcomes = _outcomes(old, new)
                    if outcomes not in seen:
                        seen.add(outcomes)
                        yield Witness(kind.name, band, _moved(operations, kind, names, band), old, new)

    def _that_can_decide(self, by_kind: _Bits, by_band: _Bits) -> _Bits:
        """Rules that fit both, up to the first that has no further condition: none after it can decide."""
        found = [one & other for one, other in zip(by_kind, by_band, strict=True)]
        for side, uncertain in enumerate(self._uncertain):
            certain = found[side] & ~uncertain
            found[side] &= ((certain & -certain) << 1) - 1
        return found[0], found[1]

    def _of_band(
        self, kind: KindFacts, names: tuple[str, ...], rules: tuple[_Bits, ...], band: Band
    ) -> _Found:
        has_totals = any(
            one & asking for each in rules for one, asking in zip(each, self._with_totals, strict=True)
        )
        key = (rules, kind.has_recipient, kind.has_rows, band if has_totals else None)
        if key not in self._known:
            members = [
                self._recipients if kind.has_recipient else self._recipients[:1],
                *self._others,
                self._rows if kind.has_rows else self._rows[:1],
            ]
            if has_totals:
                self.is_cut |= len(self._limits) > _MOST_TOTALS
                totals = _totals(kind, band, self._limits)
                members.append(self._values("totals", totals, _BY_TOTALS, band))
            self._known[key] = self._searched(rules, members)
        return self._known[key]

    def _searched(
        self, rules: tuple[_Bits, ...], members: Sequence[Sequence[tuple[_Bits, dict[str, Any]]]]
    ) -> _Found:
        """By pair of rules by which less is required: operations that they decide, one for each of `rules`."""
        found: _Found = {}
        if len(rules) == 1 and not self._can_be_less(rules[0]):
            return found
        different = [_different(each, rules) for each in members]
        self.is_cut |= prod(map(len, different)) > _MOST_COMBINED
        for values in islice(_combined(different), _MOST_COMBINED):
            self._left -= 1
            if self._left < 0:
                self.is_cut = True
                break
            old, new = (self._decision(side, rules, [bits[side] for bits, _ in values]) for side in (0, 1))
            if (old.number, new.number) not in found and self._is_less(old.rule, new.rule):
                plain = _at(Band())
                for _, changes in values:
                    plain = replace(plain, **changes)
                found[old.number, new.number] = ((plain,) * len(rules), old, new)
        return found

    def _decision(self, side: int, rules: Sequence[_Bits], fitting: Sequence[int]) -> Decision:
        numbers = []
        for each in rules:
            bits = each[side]
            for one in fitting:
                bits &= one
            numbers.append((bits & -bits).bit_length())
        key = (side, *numbers)
        if key not in self._strictest:
            every = self.documents[side].all_rules
            decisions = [Decision(number, every[number - 1]) for number in numbers]
            self._strictest[key] = decisions[0] if len(decisions) == 1 else strictest(decisions)
        return self._strictest[key]

    def _can_be_less(self, rules: _Bits) -> bool:
        outcomes = [
            {
                _outcome(rule): rule
                for place, rule in enumerate(self.documents[side].all_rules)
                if rules[side] >> place & 1
            }
            for side in (0, 1)
        ]
        return any(self._is_less(*pair) for pair in product(*(each.values() for each in outcomes)))

    def _is_less(self, old: Rule, new: Rule) -> bool:
        """Whether it is no longer refused, or `requires_less`."""
        key = (_outcome(old), _outcome(new))
        if key not in self._less:
            self._less[key] = (
                not new.refuse if old.refuse or new.refuse else requires_less(old.levels, new.levels)
            )
        return self._less[key]


def _different(
    values: Sequence[tuple[_Bits, dict[str, Any]]], rules: Sequence[_Bits]
) -> list[tuple[_Bits, dict[str, Any]]]:
    """These values, but of several that fit the same of these rules only the first."""
    both = [0, 0]
    for each in rules:
        both = [one | other for one, other in zip(both, each, strict=True)]
    found: dict[_Bits, tuple[_Bits, dict[str, Any]]] = {}
    for bits, changes in values:
        found.setdefault((bits[0] & both[0], bits[1] & both[1]), (bits, changes))
    return list(found.values())


def _outcome(rule: Rule) -> _Outcome:
    return bool(rule.refuse), rule.levels


def _outcomes(old: Decision, new: Decision) -> _Outcomes:
    return new.number, old.number, _outcome(new.rule), _outcome(old.rule)


def _at(band: Band, kind: str = "") -> DescribedOperation:
    """The plainest operation of this band."""
    return DescribedOperation(
        kind=kind, preparer=_NOBODY, at=_MONDAY, currency=band.currency, amount=_amount_of(band)
    )


def _amount_of(band: Band) -> Decimal | None:
    """The largest amount of the band, or more than every limit."""
    if not band.currency or band.up_to is not None:
        return band.up_to
    return Decimal(1) if band.above is None else EXACT.add(band.above, Decimal(1))


def _moved(
    operations: Sequence[DescribedOperation], kind: KindFacts, names: Sequence[str], band: Band
) -> tuple[DescribedOperation, ...]:
    """The same operations under these names and in this band."""
    return tuple(
        replace(one, kind=name, currency=band.currency, amount=_amount_of(band), refusable=kind.is_refusable)
        for one, name in zip(operations, names, strict=True)
    )


_NOBODY = Person(0, "")


def _bands(documents: Iterable[PolicyDocument]) -> dict[str, list[Band]]:
    """Of each currency, and of those that no rule names, the bands between its limits: within one, no limit decides."""
    limits: dict[str, set[Decimal]] = {OTHER_CURRENCY: set()}
    for when in (rule.when for document in documents for rule in document.rules):
        if when.currencies is None:
            continue
        for code in when.currencies.codes:
            limits.setdefault(code, set())
        ends = (when.amount.above, when.amount.up_to) if when.amount else ()
        limits[when.currencies.codes[0] if when.currencies.codes else OTHER_CURRENCY] |= {
            end for end in (*ends, when.total.above if when.total else None) if end
        }
    return {code: _between(code, sorted(found)) for code, found in sorted(limits.items())}


def _between(code: str, limits: Sequence[Decimal]) -> list[Band]:
    return [Band(code, *ends) for ends in zip((None, *limits), (*limits, None), strict=True)]


def _keys_by_lists(documents: Sequence[PolicyDocument]) -> list[str]:
    """A recipient on no list, and one of each combination of lists of both versions."""
    lists: dict[str, set[tuple[int, str]]] = {}
    for side, document in enumerate(documents):
        for each in document.lists:
            for key in each.keys:
                lists.setdefault(key, set()).add((side, each.name))
    one_of_each = {frozenset(on): key for key, on in sorted(lists.items(), reverse=True)}
    return ["", *one_of_each.values()]


def _recipients(documents: Sequence[PolicyDocument]) -> Iterator[RecipientFacts]:
    """Recipients that differ in a condition of any rule."""
    whens = [rule.when for document in documents for rule in document.rules]
    asked = {when.recipient for when in whens if when.recipient}
    networks = sorted({name for when in whens for name in when.networks})
    for is_new, is_saved, is_provider_user, is_look_alike, network, key in product(
        _either(asked & {RecipientIs.NEW, RecipientIs.PAID_BEFORE}),
        _either(asked & {RecipientIs.SAVED, RecipientIs.NOT_SAVED}),
        _either(asked & {RecipientIs.PROVIDER_USER}),
        _either(asked & {RecipientIs.LOOK_ALIKE}),
        ["", *networks],
        _keys_by_lists(documents),
    ):
        if not (is_saved and is_look_alike):
            yield RecipientFacts(key, is_new, is_saved, is_provider_user, is_look_alike, network)


def _either(asked: Collection[RecipientIs]) -> list[bool]:
    return [False, True] if asked else [False]


def _preparers(named_by_rules: Iterable[People | None]) -> list[Person]:
    """Nobody in particular; people with each role, in each group, with two of these; and everybody who is named, with
    each of these and without.
    """
    asked = [people for people in named_by_rules if people]
    attributes: list[dict[str, Any]] = [
        *({"roles": {role}} for role in sorted({one.role for one in asked if one.role})),
        *({"groups": {group}} for group in sorted({one.group.id for one in asked if one.group})),
    ]
    named = sorted({one.id for people in asked for one in people.named})
    chosen = [(), *((one,) for one in attributes)]
    return [
        *(_with(few, person) for few in chosen for person in (_NOBODY, *(Person(one, "") for one in named))),
        *map(_with, combinations(attributes, 2)),
    ]


def _with(attributes: Iterable[Mapping[str, Any]], person: Person | None = None) -> Person:
    every = list(attributes)
    roles, groups = (
        frozenset[Any]().union(*(each.get(name, ()) for each in every)) for name in ("roles", "groups")
    )
    return replace(person or _NOBODY, roles=roles, groups=groups)


def _times(asked: Collection[tuple[Hours, str]]) -> list[datetime]:
    """A time for each combination of these hours that there is in a week of winter or of summer."""
    found: dict[tuple[bool, ...], datetime] = {}
    ordered = sorted(asked, key=repr)
    zones = {name: ZoneInfo(name) for _, name in ordered}
    moments = {_MONDAY}
    for hours, name in ordered:
        for monday, day in product((_MONDAY, _SUMMER_MONDAY), range(-1, 8)):
            date = (monday + timedelta(days=day)).date()
            ends = (hours.start, *([hours.end] if hours.end else [hours.start.min]))
            moments |= {datetime.combine(date, end, zones[name]).astimezone(UTC) for end in ends}
    for moment in sorted(moments):
        found.setdefault(
            tuple(is_at(hours, moment.astimezone(zones[name])) for hours, name in ordered), moment
        )
    return list(found.values())


def _rows(whens: Iterable[Conditions]) -> list[int]:
    return sorted({1, *(when.more_rows_than + 1 for when in whens if when.more_rows_than is not None)})


def _totals(kind: KindFacts, band: Band, limits: Sequence[TotalAbove]) -> list[Totals]:
    """The operation alone, and with as much before it as one of these limits, or as all of them."""
    amount = _amount_of(band)
    if amount is None:
        return [{}]
    groups = [of for of in TotalOf if kind.has_recipient or of != TotalOf.RECIPIENT]
    alone = {(window, of): amount for window in Window for of in groups}
    return [alone, _raised(alone, limits), *(_raised(alone, [one]) for one in limits[:_MOST_TOTALS])]


def _raised(alone: Totals, limits: Iterable[TotalAbove]) -> Totals:
    """Totals above these limits. A week has what its day has, and everyone's what any one has."""
    totals = dict(alone)
    for limit in limits:
        more = EXACT.add(limit.above, Decimal(1))
        windows = (Window.DAY, Window.WEEK) if limit.window == Window.DAY else (Window.WEEK,)
        for group in product(windows, {limit.of, TotalOf.CURRENCY}):
            if group in totals:
                totals[group] = max(totals[group], more)
    return totals


def _combined(members: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """All combinations; of too many, those in which at most two members differ from the plainest."""
    if prod(map(len, members)) <= _MOST_COMBINED:
        yield from product(*members)
        return
    for places in combinations(range(len(members)), 2):
        yield from product(
            *(values if place in places else values[:1] for place, values in enumerate(members))
        )


def _grouped(witnesses: Iterable[Witness], bands: Mapping[str, Sequence[Band]]) -> list[Weaker]:
    """By the rules that decide, and by kinds of the same amounts."""
    found: dict[_Outcomes, tuple[Witness, dict[str, list[Band]]]] = {}
    for one in witnesses:
        _, by_kind = found.setdefault(_outcomes(one.old, one.new), (one, {}))
        by_kind.setdefault(one.kind, []).append(one.band)
    weaker: list[Weaker] = []
    for _, (one, by_kind) in sorted(found.items(), key=lambda item: item[0][:2]):
        kinds: dict[tuple[Band, ...], list[str]] = {}
        for kind, found_in in by_kind.items():
            kinds.setdefault(_joined_bands(found_in, bands), []).append(kind)
        weaker += [Weaker(one.old, one.new, tuple(names), joined) for joined, names in kinds.items()]
    return weaker


def _joined_bands(found: Collection[Band], bands: Mapping[str, Sequence[Band]]) -> tuple[Band, ...]:
    """Neighbouring bands as one; all bands of all currencies as every operation."""
    if set(found) >= {band for each in bands.values() for band in each}:
        return (Band(),)
    joined: list[Band] = []
    for each in bands.values():
        last_place = -2
        for place, band in enumerate(each):
            if band not in found:
                continue
            if place == last_place + 1:
                joined[-1] = replace(joined[-1], up_to=band.up_to)
            else:
                joined.append(band)
            last_place = place
    return tuple(joined) or (Band(),)
