"""The evaluator, compared with a naive one that was written apart from it, and its rules one by one."""

import itertools
import os
from dataclasses import replace
from datetime import datetime, time
from decimal import Decimal
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from backoffice.policies import evaluator
from backoffice.policies.document import (
    LAST_RULE,
    AmountBand,
    Conditions,
    Currencies,
    Hours,
    Level,
    Levels,
    Named,
    People,
    PolicyDocument,
    Rule,
    approvals_in,
)
from backoffice.policies.evaluator import (
    Condition,
    DescribedOperation,
    Evaluator,
    Hindrance,
    Person,
    can_be_satisfied,
    decide,
    hindrance,
    is_at,
    never_permitted,
    progress,
    stricter,
    strictest,
)
from tests.policies import random_policies

SEED = int(os.environ.get("POLICY_SEED", "17"))
CASES = int(os.environ.get("POLICY_CASES", "2000"))
"""100,000 in the whole campaign."""

DIRECTORS, TREASURY = (
    People(group=Named(id=n, name=name)) for n, name in enumerate(("Directors", "Treasury"), 1)
)
ADA, BOLA, CHIDI, DAYO = (
    Person(id=n, name=name, groups=frozenset(groups))
    for n, (name, groups) in enumerate((("Ada", {1}), ("Bola", {2}), ("Chidi", {1, 2}), ("Dayo", ())), 1)
)
WITHDRAWAL = DescribedOperation(
    kind="withdrawal", preparer=DAYO, at=random_policies.NOON, currency="NGN", amount=Decimal(500)
)


def naive_fits(rule: Rule, document: PolicyDocument, op: DescribedOperation) -> bool:
    """All conditions in one expression each, from the words of the requirement."""
    w, r = rule.when, op.recipient
    in_list = [key for each in document.lists if each.name == w.on_list for key in each.keys]
    return all(
        (
            not w.kinds or op.kind in w.kinds,
            naive_currency(rule, op),
            w.amount is None
            or (
                op.amount is not None
                and (Decimal(-1) if w.amount.above is None else w.amount.above)
                < op.amount
                <= (Decimal("1e40") if w.amount.up_to is None else w.amount.up_to)
            ),
            w.recipient is None or w.recipient.value in naive_words(op),
            not w.on_list or (r is not None and r.key in in_list),
            not w.networks or (r is not None and r.network in w.networks),
            w.preparer is None or naive_belongs(op.preparer, w.preparer),
            w.total is None or op.totals.get((w.total.window, w.total.of), Decimal(-1)) > w.total.above,
            naive_hours(rule, document, op),
            w.more_rows_than is None or op.rows > w.more_rows_than,
            not rule.refuse or op.refusable,
        )
    )


def naive_currency(rule: Rule, op: DescribedOperation) -> bool:
    wanted = rule.when.currencies
    if wanted is None:
        return True
    if op.currency == "":
        return False
    return op.currency not in wanted.codes if wanted.other_than else op.currency in wanted.codes


def naive_words(op: DescribedOperation) -> list[str]:
    r = op.recipient
    if r is None:
        return []
    return [
        "new" if r.is_new else "paid_before",
        "saved" if r.is_saved else "not_saved",
        *(["provider_user"] if r.is_provider_user else []),
        *(["look_alike"] if r.is_look_alike else []),
    ]


def naive_hours(rule: Rule, document: PolicyDocument, op: DescribedOperation) -> bool:
    hours = rule.when.hours
    if hours is None:
        return True
    local = op.at.astimezone(ZoneInfo(document.time_zone))
    minute_of_week = (local.weekday() * 24 + local.hour) * 60 + local.minute
    covered = set()
    for day in hours.weekdays:
        start = (day * 24 + hours.start.hour) * 60 + hours.start.minute
        end = (
            (day + 1) * 24 * 60 if hours.end is None else (day * 24 + hours.end.hour) * 60 + hours.end.minute
        )
        end += 24 * 60 if end < start else 0  # the morning after
        covered |= {minute % (7 * 24 * 60) for minute in range(start, end)}
    return minute_of_week not in covered if hours.outside else minute_of_week in covered


def naive_belongs(person: Person, people: People) -> bool:
    if people.role:
        return people.role in person.roles
    if people.group is not None:
        return people.group.id in person.groups
    return person.id in [one.id for one in people.named] if people.named else True


def naive_decision(document: PolicyDocument, op: DescribedOperation) -> Rule:
    fitting = [rule for rule in document.rules if naive_fits(rule, document, op)]
    return fitting[0] if fitting else LAST_RULE


def naive_missing(levels: Levels, approvers: list[Person], preparer: int) -> int:
    """Let each approval in its order fill the first open level that takes it, level by level."""
    missing, used = 0, {preparer}
    is_blocked = False
    for level in levels:
        left = level.needed
        for one in approvers:
            if left and not is_blocked and one.id not in used and naive_belongs(one, level.of):
                used.add(one.id)
                left -= 1
        missing += left
        is_blocked = is_blocked or left > 0
    return missing


def test_random_policies_decide_like_a_naive_evaluator() -> None:
    random = Random(SEED)  # noqa: S311 - the same every time, no secret
    refused = last = 0
    for _ in range(CASES):
        document, operation = random_policies.document(random), random_policies.operation(random)
        decision, expected = decide(document, operation), naive_decision(document, operation)
        assert decision.rule == expected, (document, operation)
        misses = Evaluator(document).misses(operation)
        assert all(misses)
        assert len(misses) == decision.number - 1
        refused += bool(decision.rule.refuse)
        last += decision.rule is LAST_RULE
        assert decision.rule.refuse or approvals_in(decision.rule.levels) >= 1
    assert refused > CASES / 100
    assert CASES / 20 < last < CASES * 0.95


def test_random_approvals_count_like_a_naive_evaluator() -> None:
    random = Random(SEED)  # noqa: S311 - the same every time, no secret
    for _ in range(CASES):
        levels = random_policies.levels(random)
        approvers = [random_policies.person(random) for _ in range(random.randint(0, 6))]
        approvers = list({one.id: one for one in approvers}.values())
        preparer = random.randint(1, 7)
        found = progress(levels, approvers, preparer_id=preparer)
        assert found.missing == naive_missing(levels, approvers, preparer), (levels, approvers, preparer)
        counted = [one for level in found.levels for one in level.given]
        assert len(counted) == len(set(counted))
        assert preparer not in counted


def test_the_stricter_of_two_satisfies_both() -> None:
    """Whoever can complete the stricter levels in some order can complete each of the two."""
    random = Random(SEED)  # noqa: S311 - the same every time, no secret
    for _ in range(CASES):
        first, second = random_policies.levels(random), random_policies.levels(random)
        both = stricter(first, second)
        people = list({one.id: one for one in (random_policies.person(random) for _ in range(9))}.values())
        if can_be_satisfied(both, people):
            assert can_be_satisfied(first, people), (first, second)
            assert can_be_satisfied(second, people), (first, second)
        assert max(map(approvals_in, (first, second))) <= approvals_in(both)
        assert approvals_in(both) <= approvals_in(first) + approvals_in(second)
        assert stricter(first, first) == first


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ([Level(needed=1)], [Level(needed=2)], [Level(needed=2)]),
        ([Level(needed=1)], [Level(needed=2, of=DIRECTORS)], [Level(needed=2, of=DIRECTORS)]),
        (
            [Level(needed=1, of=TREASURY)],
            [Level(needed=1, of=DIRECTORS)],
            [Level(needed=1, of=TREASURY), Level(needed=1, of=DIRECTORS)],
        ),
        (
            [Level(needed=1, of=TREASURY), Level(needed=2, of=DIRECTORS)],
            [Level(needed=1)],
            [Level(needed=1, of=TREASURY), Level(needed=2, of=DIRECTORS)],
        ),
    ],
)
def test_the_stricter_of_two(first: list[Level], second: list[Level], both: list[Level]) -> None:
    assert stricter(tuple(first), tuple(second)) == tuple(both)


def test_an_approver_counts_once() -> None:
    levels = (Level(needed=1, of=TREASURY), Level(needed=1, of=DIRECTORS))
    assert progress(levels, [CHIDI, CHIDI], preparer_id=9).missing == 1
    assert progress(levels, [CHIDI, ADA], preparer_id=9).is_complete


def test_the_preparer_never_counts() -> None:
    assert progress((Level(needed=1),), [ADA], preparer_id=ADA.id).missing == 1


def test_levels_are_completed_in_their_order() -> None:
    levels = (Level(needed=1, of=TREASURY), Level(needed=1, of=DIRECTORS))
    found = progress(levels, [ADA], preparer_id=9)
    assert (found.open and found.open.level, found.missing) == (levels[0], 2)
    assert progress(levels, [ADA, BOLA], preparer_id=9).is_complete


def test_the_last_rule_decides_without_any_other_and_needs_one_other_person() -> None:
    decision = decide(PolicyDocument(), WITHDRAWAL)
    assert (decision.number, decision.rule) == (1, LAST_RULE)
    assert approvals_in(LAST_RULE.levels) == 1


def test_the_decision_says_why_the_rules_before_did_not_fit() -> None:
    large = Conditions(
        kinds=("transfer",), currencies=Currencies(codes=("NGN",)), amount=AmountBand(above=1000)
    )
    rules = (Rule(when=large, refuse="No"), Rule(levels=(Level(needed=2),)))
    assert Evaluator(PolicyDocument(rules=rules)).misses(WITHDRAWAL) == [[Condition.KIND, Condition.AMOUNT]]


def test_what_changes_countersign_itself_is_never_refused() -> None:
    document = PolicyDocument(rules=(Rule(refuse="Closed"),))
    assert decide(document, WITHDRAWAL).rule.refuse
    assert decide(document, replace(WITHDRAWAL, refusable=False)).rule == LAST_RULE


def test_hours_are_those_of_the_zone_of_the_document() -> None:
    """The clock of Berlin goes back at 01:00 UTC on that Sunday."""
    rule = Rule.model_validate(
        {"when": {"hours": {"start": "09:00", "end": "17:00"}}, "levels": [{"needed": 1}]}
    )
    document = PolicyDocument(rules=(rule,), time_zone="Europe/Berlin")
    for at, number in (
        ("2026-10-24T07:00:00+00:00", 1),
        ("2026-10-25T07:30:00+00:00", 2),
        ("2026-10-25T08:00:00+00:00", 1),
        ("2026-10-25T16:00:00+00:00", 2),
    ):
        operation = replace(WITHDRAWAL, at=datetime.fromisoformat(at))
        assert decide(document, operation).number == number, at


def test_of_several_amounts_the_strictest_decides() -> None:
    def above(limit: int, **outcome: object) -> Rule:
        members = {"when": {"currencies": {"codes": ["NGN"]}, "amount": {"above": limit}}, **outcome}
        return Rule.model_validate(members)

    document = PolicyDocument(
        rules=(
            above(1000, levels=[{"needed": 3}]),
            above(100, levels=[{"needed": 1, "of": {"role": "Approver"}}]),
        )
    )
    rows = [decide(document, replace(WITHDRAWAL, amount=Decimal(amount))) for amount in (10, 500, 5000)]
    for order in itertools.permutations(rows):
        found = strictest(order)
        assert found.number == 1
        assert approvals_in(found.rule.levels) == 3
        assert any(level.of.role for level in found.rule.levels)


def test_one_refused_part_refuses_the_whole() -> None:
    document = PolicyDocument(rules=(Rule(when=Conditions(kinds=("transfer",)), refuse="No transfers"),))
    parts = [decide(document, replace(WITHDRAWAL, kind=kind)) for kind in ("withdrawal", "transfer")]
    assert strictest(parts).rule.refuse == "No transfers"


@pytest.mark.parametrize(
    ("person", "why"),
    [
        (DAYO, Hindrance.PREPARED),
        (BOLA, Hindrance.APPROVED),
        (replace(ADA, is_active=False), Hindrance.DEACTIVATED),
        (replace(ADA, may_approve=False), Hindrance.NO_PERMISSION),
        (replace(ADA, is_withheld=True), Hindrance.WITHHELD),
        (replace(ADA, is_on_leave=True), Hindrance.ON_LEAVE),
        (replace(ADA, groups=frozenset()), Hindrance.NOT_IN_LEVEL),
        (ADA, None),
    ],
)
def test_why_a_person_cannot_approve(person: Person, why: Hindrance | None) -> None:
    level = Level(needed=1, of=DIRECTORS)
    assert hindrance(person, level, preparer_id=DAYO.id, approved={BOLA.id}) == why


def test_people_of_two_groups_take_the_place_that_others_cannot() -> None:
    levels = (Level(needed=1, of=DIRECTORS), Level(needed=1, of=TREASURY))
    assert can_be_satisfied(levels, [CHIDI, ADA])
    assert can_be_satisfied(levels, [CHIDI, BOLA])
    assert not can_be_satisfied(levels, [CHIDI])
    assert not can_be_satisfied((Level(needed=2, of=DIRECTORS),), [ADA, BOLA])


def test_the_evaluator_reads_no_clock_and_no_database() -> None:
    """Without the mark for the database, a query would fail the tests above."""
    assert not {"clock", "timezone", "models", "settings"} & set(vars(evaluator))


FRIDAY_NIGHT = Hours(weekdays=(4,), start=time(22), end=time(6))


@pytest.mark.parametrize(
    ("local", "is_inside"),
    [
        ("2026-11-27 21:59", False),  # a Friday
        ("2026-11-27 22:00", True),
        ("2026-11-28 00:00", True),
        ("2026-11-28 05:59", True),
        ("2026-11-28 06:00", False),
        ("2026-11-28 22:00", False),
        ("2026-11-27 05:00", False),
    ],
)
def test_a_night_belongs_to_the_weekday_on_which_it_begins(local: str, is_inside: bool) -> None:
    moment = datetime.fromisoformat(local)
    assert is_at(FRIDAY_NIGHT, moment) is is_inside
    assert is_at(FRIDAY_NIGHT.model_copy(update={"outside": True}), moment) is not is_inside


KINDS = ["withdrawal", "transfer"]
REFUSED: dict[str, Any] = {"refuse": "Closed"}
ONE: dict[str, Any] = {"levels": [{"needed": 1}]}


@pytest.mark.parametrize(
    ("rules", "never"),
    [
        ([], []),
        ([REFUSED], KINDS),
        ([REFUSED, ONE], KINDS),
        ([ONE, REFUSED], []),
        ([{"when": {"kinds": ["transfer"]}, **REFUSED}], ["transfer"]),
        ([{"when": {"kinds": ["transfer"]}, **ONE}, REFUSED], ["withdrawal"]),
        ([{"when": {"recipient": "new"}, **ONE}, REFUSED], []),
        ([{"when": {"recipient": "new"}, **REFUSED}], []),
        ([{"when": {"recipient": "new"}, **REFUSED}, REFUSED, ONE], KINDS),
        ([{"when": {"currencies": {"other_than": True}}, **REFUSED}], KINDS),
        ([{"when": {"currencies": {"codes": ["NGN"], "other_than": True}}, **REFUSED}], []),
        ([{"when": {"hours": {"weekdays": [6, 5, 4, 3, 2, 1, 0]}}, **REFUSED}], KINDS),
        ([{"when": {"hours": {"outside": True}}, **REFUSED}], []),
        ([{"when": {"hours": {"weekdays": [5, 6]}}, **REFUSED}], []),
        ([{"when": {"more_rows_than": 0}, **REFUSED}], KINDS),
        ([{"when": {"more_rows_than": 1}, **REFUSED}], []),
    ],
)
def test_which_kinds_a_version_never_permits(rules: list[dict[str, Any]], never: list[str]) -> None:
    assert never_permitted(PolicyDocument.model_validate({"rules": rules}), KINDS) == never


def test_no_payment_of_a_kind_that_is_never_permitted_is_permitted() -> None:
    random = Random(SEED)  # noqa: S311 - the same every time, no secret
    checked = 0
    for _ in range(CASES):
        document = random_policies.document(random)
        never = never_permitted(document, random_policies.KINDS)
        operation = random_policies.operation(random)
        if operation.kind in never and operation.currency and operation.refusable:
            assert decide(document, operation).rule.refuse
            checked += 1
    assert checked or CASES < 1000
