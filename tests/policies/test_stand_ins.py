"""Who can approve, and in whose place, compared with a naive evaluator over random people, leaves and levels."""

import os
import random

from backoffice.policies.document import Level, Named, People
from backoffice.policies.evaluator import Leave, Person, capacity, progress

CASES = int(os.environ.get("POLICY_CASES", "2000"))
ROLES, GROUPS, IDS = ("Approver", "Preparer"), (1, 2), range(1, 6)


def random_person(chance: random.Random, number: int, away: set[int]) -> Person:
    return Person(
        id=number,
        name=str(number),
        roles=frozenset(chance.sample(ROLES, chance.randint(0, 2))),
        groups=frozenset(chance.sample(GROUPS, chance.randint(0, 2))),
        is_active=chance.random() < 0.9,
        may_approve=chance.random() < 0.9,
        is_withheld=chance.random() < 0.1,
        is_on_leave=number in away,
    )


def random_level(chance: random.Random, needed: int = 1) -> Level:
    named = tuple(Named(id=pk, name=str(pk)) for pk in chance.sample(IDS, 2))
    group = Named(id=chance.choice(GROUPS), name="group")
    of = chance.choice([People(), People(role="Approver"), People(group=group), People(named=named)])
    return Level(needed=needed, of=of)


def naive_belongs(person: Person, level: Level) -> bool:
    of = level.of
    if of.role:
        return of.role in person.roles
    if of.group:
        return of.group.id in person.groups
    return not of.named or person.id in [one.id for one in of.named]


def naive_is_free(person: Person, banned: set[int]) -> bool:
    return person.is_active and person.may_approve and not person.is_withheld and person.id not in banned


def naive_places(
    person: Person, level: Level, people: dict[int, Person], leaves: list[Leave], banned: set[int]
) -> set[int]:
    """The ids as whom the person can approve."""
    if not naive_is_free(person, banned) or person.is_on_leave:
        return set()
    if naive_belongs(person, level):
        return {person.id}
    found = set()
    for leave in leaves:
        away = people[leave.away]
        if (
            leave.stand_in == person.id
            and leave.away != person.id
            and leave.can_act
            and {leave.group} <= person.groups
            and {leave.group} <= away.groups
            and naive_is_free(away, banned)
            and naive_belongs(away, level)
        ):
            found.add(away.id)
    return found


def test_the_capacity_is_that_of_a_naive_evaluator() -> None:
    chance = random.Random(int(os.environ.get("POLICY_SEED", "17")))  # noqa: S311 - the same every time, no secret
    acting = 0
    for _ in range(CASES):
        pairs = [(chance.choice(IDS), chance.choice(IDS)) for _ in range(chance.randint(0, 3))]
        leaves = [Leave(*pair, chance.choice(GROUPS), chance.random() < 0.8) for pair in pairs]
        away = {leave.away for leave in leaves}
        people = {number: random_person(chance, number, away) for number in IDS}
        level, preparer = random_level(chance), chance.choice(IDS)
        approved, affected = set(chance.sample(IDS, 1)), set(chance.sample(IDS, chance.randint(0, 1)))
        for person in people.values():
            found = capacity(
                person,
                level,
                people=people,
                leaves=leaves,
                preparer_id=preparer,
                approved=approved,
                affected=affected,
            )
            places = naive_places(person, level, people, leaves, {preparer, *approved, *affected})
            as_whom = found.in_place_of.id if found.in_place_of else person.id
            assert (found.hindrance is None) == bool(places)
            assert not places or as_whom in places
            acting += found.in_place_of is not None
    assert acting > CASES / 500


def test_no_person_counts_twice_whoever_acts_for_whom() -> None:
    chance = random.Random(int(os.environ.get("POLICY_SEED", "18")))  # noqa: S311 - the same every time, no secret
    for _ in range(CASES):
        levels = tuple(random_level(chance, chance.randint(1, 2)) for _ in range(chance.randint(1, 3)))
        given = []
        for _ in range(chance.randint(0, 5)):
            person = random_person(chance, chance.choice(IDS), set())
            stand_in = chance.choice([None, *IDS])
            given.append(
                Person(
                    id=person.id,
                    name="",
                    roles=person.roles,
                    groups=person.groups,
                    stand_in_id=None if stand_in == person.id else stand_in,
                )
            )
        preparer = chance.choice(IDS)
        found = progress(levels, given, preparer_id=preparer)
        counted = [pk for level in found.levels for pk in level.given]
        involved: list[int] = []
        for one in given:
            people = {one.id, one.stand_in_id} - {None}
            if one.id in counted and not people & {preparer, *involved}:
                involved += [pk for pk in people if pk is not None]
        assert preparer not in counted
        assert len(set(counted)) == len(counted)
        assert set(counted) <= set(involved)
