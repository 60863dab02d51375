"""What a version requires less than another one, found without any history."""

import time
from random import Random
from typing import Any

import pytest

from backoffice.operations.kinds.approval_policy import kind_facts
from backoffice.policies.document import LAST_RULE, Level, Named, People, PolicyDocument, Rule
from backoffice.policies.evaluator import Evaluator, requires_less, strictest
from backoffice.policies.weakening import KindFacts, weakening
from backoffice.policies.weaker_sentences import MOST_SENTENCES, requires_less_texts
from tests.policies import random_policies

USDT, NGN = {"codes": ["USDT"]}, {"codes": ["NGN"]}
TWO, ONE = [{"needed": 2}], [{"needed": 1}]
LARGE = {"when": {"currencies": USDT, "amount": {"above": 10_000}}, "levels": TWO}
CRYPTO = {"when": {"kinds": ["wallet_transfer"]}, "levels": ONE}
DIRECTORS, TREASURY = (
    {"group": {"id": number, "name": name}} for number, name in ((1, "Directors"), (2, "Treasury"))
)


def policy(*rules: dict[str, Any], **members: Any) -> PolicyDocument:
    return PolicyDocument.model_validate({"rules": rules, **members})


def sentences(old: PolicyDocument, new: PolicyDocument) -> list[str]:
    return list(requires_less_texts(old, new, kind_facts()).sentences)


def test_a_general_rule_before_a_stricter_one_is_announced() -> None:
    assert sentences(policy(LARGE), policy(CRYPTO, LARGE)) == [
        "Crypto transfers above USDT 10,000.000000: 1 other person under rule 1, currently 2 other people."
    ]
    assert sentences(policy(LARGE), policy(LARGE, CRYPTO)) == []


OLD_AND_NEW: dict[str, tuple[PolicyDocument, PolicyDocument, list[str]]] = {
    "reordered": (
        policy({"when": {"kinds": ["transfer"]}, "levels": [{"needed": 3}]}, {"levels": TWO}),
        policy({"levels": TWO}, {"when": {"kinds": ["transfer"]}, "levels": [{"needed": 3}]}),
        ["Transfers and Batches: 2 other people under rule 1, currently 3 other people."],
    ),
    "a threshold raised": (
        policy(LARGE),
        policy({**LARGE, "when": {"currencies": USDT, "amount": {"above": 20_000}}}),
        [
            "All payments above USDT 10,000.000000 and up to USDT 20,000.000000: 1 other person under the "
            "last rule, currently 2 other people."
        ],
    ),
    "no refusal any more": (
        policy({"when": {"currencies": NGN, "recipient": "new"}, "refuse": "Not in naira"}),
        policy(),
        [
            "Withdrawals, Transfers, Crypto transfers, Off-ramp payments and Batches in NGN to new recipients: "
            "1 other person under the last rule, currently refused."
        ],
    ),
    "everything": (
        policy({"levels": TWO}),
        policy(),
        ["All operations: 1 other person under the last rule, currently 2 other people."],
    ),
    "of others": (
        policy({"when": {"kinds": ["transfer"]}, "levels": [{"needed": 2, "of": DIRECTORS}]}),
        policy({"when": {"kinds": ["transfer"]}, "levels": [{"needed": 3}]}),
        ["Transfers and Batches: 3 other people under rule 1, currently 2 of Directors."],
    ),
    "an exception for known recipients": (
        policy(LARGE),
        policy({"when": {"recipient": "saved"}, "levels": ONE}, LARGE),
        [
            "Withdrawals, Transfers, Crypto transfers, Off-ramp payments and Batches above USDT 10,000.000000 to "
            "approved recipients: 1 other person under rule 1, currently 2 other people."
        ],
    ),
    "other hours": (
        policy({"when": {"kinds": ["resume"], "hours": {"start": "08:00", "end": "18:00"}}, "levels": TWO}),
        policy({"when": {"kinds": ["resume"], "hours": {"start": "09:00", "end": "18:00"}}, "levels": TWO}),
        [
            "Resumptions prepared on Mon, Tue, Wed, Thu, Fri, Sat, Sun, 08:00 to 18:00 (UTC): 1 other "
            "person under the last rule, currently 2 other people."
        ],
    ),
    "large batches": (
        policy({"when": {"more_rows_than": 10}, "levels": TWO}),
        policy({"when": {"more_rows_than": 20}, "levels": TWO}),
        [
            "Batches in batches of more than 10 rows: 1 other person under the last rule, currently 2 other "
            "people."
        ],
    ),
    "removed from a list": (
        policy(
            {"when": {"kinds": ["transfer"], "on_list": "Risky"}, "levels": TWO},
            lists=[{"name": "Risky", "keys": ["user:ada", "user:bola"]}],
        ),
        policy(
            {"when": {"kinds": ["transfer"], "on_list": "Risky"}, "levels": TWO},
            lists=[{"name": "Risky", "keys": ["user:ada"]}],
        ),
        [
            "Transfers and Batches to the list “Risky”: 1 other person under the last rule, currently 2 "
            "other people."
        ],
    ),
    "a larger total": (
        policy(
            {
                "when": {"currencies": NGN, "total": {"window": "day", "of": "preparer", "above": 100}},
                "levels": TWO,
            }
        ),
        policy(
            {
                "when": {"currencies": NGN, "total": {"window": "day", "of": "preparer", "above": 500}},
                "levels": TWO,
            }
        ),
        [
            "All payments up to NGN 500.00 that bring their preparer's 24-hour total above NGN 100.00: "
            "1 other person under the last rule, currently 2 other people."
        ],
    ),
    "requirements for recipients": (
        policy(recipients={"approved_only": ["withdrawal", "transfer"], "cooling": {"hours": 24}}),
        policy(recipients={"approved_only": ["withdrawal"], "cooling": {"hours": 12}}),
        [
            "This version no longer requires approved recipients for Transfers.",
            "This version permits more during the cooling-off period for recipients, or makes it shorter.",
        ],
    ),
}


@pytest.mark.parametrize("name", OLD_AND_NEW)
def test_what_requires_less_is_said_in_one_sentence(name: str) -> None:
    old, new, expected = OLD_AND_NEW[name]
    assert sentences(old, new) == expected
    assert sentences(old, old) == []


def test_the_same_of_several_limits_is_one_sentence() -> None:
    others = {"when": {"currencies": {**USDT, "other_than": True}}, "levels": TWO}
    assert sentences(policy(LARGE, others), policy(CRYPTO, LARGE, others)) == [
        "Crypto transfers above USDT 10,000.000000 or in currencies other than USDT: 1 other person under "
        "rule 1, currently 2 other people."
    ]


def test_stricter_versions_and_other_names_are_not_announced() -> None:
    of_two = {"levels": [{"needed": 1, "of": TREASURY}, {"needed": 1, "of": DIRECTORS}]}
    renamed = {
        "levels": [{"needed": 1, "of": {"group": {"id": 1, "name": "Board"}}}, {"needed": 1, "of": TREASURY}]
    }
    assert sentences(policy(), policy(LARGE)) == []
    assert sentences(policy({"levels": TWO}), policy(of_two)) == []
    assert sentences(policy(of_two), policy(renamed)) == []
    assert sentences(policy(LARGE), policy({**CRYPTO, "levels": [{"needed": 2}]}, LARGE)) == []
    assert sentences(policy(LARGE), policy({"when": {}, "refuse": "Closed"})) == []


def test_a_batch_is_decided_as_what_its_rows_are_too() -> None:
    batches = {"when": {"kinds": ["batch"]}, "levels": ONE}
    assert sentences(policy(LARGE), policy(batches, LARGE)) == []


@pytest.mark.parametrize(
    ("old", "new", "less"),
    [
        ([(2, {})], [(1, {})], True),
        ([(1, {})], [(2, {})], False),
        ([(2, DIRECTORS)], [(2, {})], True),
        ([(2, {})], [(1, DIRECTORS), (1, TREASURY)], False),
        ([(1, DIRECTORS)], [(3, TREASURY)], True),
        ([(1, DIRECTORS), (1, TREASURY)], [(1, TREASURY), (1, DIRECTORS)], False),
    ],
)
def test_fewer_approvals_or_those_of_others_are_less(old: Any, new: Any, less: bool) -> None:
    before, after = (
        tuple(Level.model_validate({"needed": needed, "of": of}) for needed, of in each)
        for each in (old, new)
    )
    assert requires_less(before, after) is less


RANDOM_KINDS = (
    KindFacts("withdrawal", (("withdrawal",),), has_amount=True, has_recipient=True),
    KindFacts("transfer", (("transfer", "withdrawal"),), has_amount=True, has_recipient=True, has_rows=True),
    KindFacts("callback_url", (("callback_url",),), is_refusable=False),
)


def is_less(old: Rule, new: Rule) -> bool:
    if old.refuse or new.refuse:
        return not new.refuse
    return requires_less(old.levels, new.levels)


def test_every_witness_needs_less_under_the_new_version() -> None:
    witnesses = 0
    for seed in range(60):
        random = Random(seed)  # noqa: S311 - the same every time, no secret
        old, new = random_policies.document(random), random_policies.document(random)
        found = weakening(old, new, RANDOM_KINDS)
        for one in found.witnesses:
            before, after = (
                strictest([Evaluator(each).decide(operation) for operation in one.operations])
                for each in (old, new)
            )
            assert (before.number, after.number) == (one.old.number, one.new.number), seed
            assert is_less(before.rule, after.rule), seed
            assert {operation.kind for operation in one.operations} >= {one.kind}
        witnesses += len(found.witnesses)
    assert witnesses > 400


def test_what_needs_less_is_found() -> None:
    """For a random operation that needs less, a finding for its kind names the two rules that decide it."""
    for seed in range(400):
        random = Random(seed)  # noqa: S311 - the same every time, no secret
        old, new = random_policies.document(random), random_policies.document(random)
        facts = [
            KindFacts(kind, ((kind,),), has_amount=True, has_recipient=True) for kind in random_policies.KINDS
        ]
        operation = random_policies.operation(random)
        if (
            operation.rows > 1
            or operation.amount is None
            or not operation.refusable
            or operation.recipient is None
        ):
            continue
        before, after = (Evaluator(each).decide(operation) for each in (old, new))
        if is_less(before.rule, after.rule):
            found = weakening(old, new, facts).witnesses
            pairs = {(one.old.number, one.new.number) for one in found if one.kind == operation.kind}
            assert (before.number, after.number) in pairs, seed


def test_what_named_people_need_as_members_of_a_group_is_compared() -> None:
    """Ada is named by a stricter rule, and in the group of a later one: the new version asks for the group first."""
    ada = {"named": [{"id": 7, "name": "Ada"}]}
    by_name = {"when": {"preparer": ada}, "levels": [{"needed": 3}]}
    by_group = {"when": {"preparer": TREASURY}, "levels": ONE}
    [sentence] = sentences(policy(by_name, by_group), policy(by_group, by_name))
    assert ": 1 other person under rule 1, currently 3 other people." in sentence


def test_a_time_zone_that_differs_in_summer_alone_is_compared() -> None:
    at_night = {"when": {"hours": {"start": "18:00", "end": "08:00"}}, "levels": [{"needed": 3}]}
    lagos, berlin = (policy(at_night, time_zone=f"{name}") for name in ("Africa/Lagos", "Europe/Berlin"))
    assert sentences(lagos, berlin) != []
    assert sentences(lagos, lagos) == []


def test_batches_of_different_rows_are_different_sentences() -> None:
    risk = {"group": {"id": 3, "name": "Risk"}}
    old = policy(
        {"when": {"kinds": ["batch"]}, "levels": [{"needed": 1, "of": TREASURY}]},
        {"when": {"kinds": ["transfer"]}, "levels": [{"needed": 1, "of": DIRECTORS}]},
        {"when": {"kinds": ["withdrawal"]}, "levels": [{"needed": 1, "of": risk}]},
    )
    of_batches = [one for one in sentences(old, policy()) if one.startswith("Batches")]
    assert sum("Directors" in one for one in of_batches) == sum("Risk" in one for one in of_batches) == 1


def test_a_comparison_that_leaves_something_out_says_so() -> None:
    groups = [
        {"when": {"preparer": {"group": {"id": number, "name": f"G{number}"}}}, "levels": TWO}
        for number in range(1, 40)
    ]
    found = requires_less_texts(policy(*groups), policy(), kind_facts())
    assert found.rest[-1].startswith("This comparison is incomplete: there are too many rules.")


ALL_KINDS, CODES = [kind.name for kind in kind_facts()], ("NGN", "USD", "USDT")
MANY_RULES = {
    "of different kinds": [
        {
            "when": {
                "kinds": [ALL_KINDS[number % len(ALL_KINDS)], ALL_KINDS[number * 5 % len(ALL_KINDS)]],
                "currencies": {"codes": [CODES[number % 3]]},
                "amount": {"above": 1000 * (200 - number)},
                **({"recipient": "new"} if number % 5 == 0 else {}),
            },
            "levels": [{"needed": 1 + number % 4}],
        }
        for number in range(200)
    ],
    "of all kinds, each with its limit": [
        {
            "when": {
                "currencies": {"codes": [CODES[number % 3]]},
                "amount": {"above": 1000 * (200 - number)},
                "recipient": ("new", "saved", "look_alike")[number % 3],
                "preparer": {"group": {"id": number % 7 + 1, "name": "Group"}},
            },
            "levels": [{"needed": 1 + number % 4}],
        }
        for number in range(200)
    ],
}


@pytest.mark.parametrize("name", MANY_RULES)
def test_versions_of_many_rules_are_compared_in_about_a_second(name: str) -> None:
    old, new = policy(*MANY_RULES[name]), policy(*reversed(MANY_RULES[name]))
    began = time.process_time()
    found = requires_less_texts(old, new, kind_facts())
    assert time.process_time() - began < 2.0  # a fifth of it on a machine that does nothing else
    assert len(found.sentences) == MOST_SENTENCES
    assert found.more > 0


def test_the_last_rule_is_never_less() -> None:
    assert not requires_less(LAST_RULE.levels, (Level(needed=1, of=People(group=Named(id=1, name="Board"))),))
