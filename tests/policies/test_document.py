"""What a document can and cannot say."""

import hashlib
import json
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from backoffice.policies.document import (
    LAST_RULE,
    Cooling,
    Level,
    PolicyDocument,
    RecipientRequirements,
    Rule,
    approvals_in,
    read_levels,
    stored_levels,
)
from tests.policies import random_policies


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"levels": []},
        {"levels": [{"needed": 0}]},
        {"levels": [{"needed": -1}]},
        {"levels": [{"needed": 2, "of": {"named": [{"id": 1, "name": "Ada"}]}}]},
        {"levels": [{"needed": 2, "of": {"named": [{"id": 1, "name": "Ada"}, {"id": 1, "name": "Ada"}]}}]},
        {"levels": [{"needed": 1}], "refuse": "and refused"},
        {"levels": [{"needed": 1, "of": {"role": "Approver", "group": {"id": 1, "name": "Directors"}}}]},
        {"levels": [{"needed": 1}], "approvals": 0},
        {"levels": [{"needed": 1}], "when": {"amount": {"above": 5}}},
        {
            "levels": [{"needed": 1}],
            "when": {"currencies": {"codes": ["NGN", "USD"]}, "amount": {"above": 5}},
        },
        {"levels": [{"needed": 1}], "when": {"currencies": {"codes": ["NGN"]}, "amount": {}}},
        {"levels": [{"needed": 1}], "when": {"currencies": {"codes": ["NGN"]}, "amount": {"above": "NaN"}}},
        {"levels": [{"needed": 1}], "when": {"currencies": {"codes": []}}},
        {"levels": [{"needed": 1}], "when": {"hours": {"weekdays": []}}},
        {"levels": [{"needed": 1}], "when": {"hours": {"start": "17:00", "end": "17:00"}}},
        {"levels": [{"needed": 1}], "when": {"preparer": {}}},
        {"levels": [{"needed": 1}], "when": {"on_list": "nowhere"}},
    ],
)
def test_a_document_by_which_fewer_would_be_enough_or_that_means_nothing_cannot_be_made(
    rule: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        PolicyDocument.model_validate({"rules": [rule]})


def test_the_last_rule_is_in_no_document_and_after_every_one() -> None:
    document = PolicyDocument(rules=(Rule(levels=(Level(needed=3),)),))
    assert document.all_rules == (*document.rules, LAST_RULE)
    assert LAST_RULE not in document.rules
    with pytest.raises(ValidationError):
        PolicyDocument.model_validate({"rules": [], "last": {"levels": []}})


def test_what_is_stored_is_read_as_the_same_document() -> None:
    random = Random(17)  # noqa: S311 - the same every time, no secret
    for _ in range(500):
        document = random_policies.document(random)
        read = PolicyDocument.model_validate(json.loads(json.dumps(document.stored())))
        assert (read, read.digest) == (document, document.digest)


def test_the_digest_depends_on_the_order_of_rules_and_on_every_amount() -> None:
    first, second = Rule(levels=(Level(needed=1),)), Rule(levels=(Level(needed=2),))
    digests = {
        PolicyDocument(rules=rules).digest for rules in ((first, second), (second, first), (first,), ())
    }
    assert len(digests) == 4


def test_stored_levels_are_never_empty() -> None:
    levels = (Level(needed=2), Level(needed=1))
    assert read_levels(stored_levels(levels)) == levels
    assert approvals_in(levels) == 3
    with pytest.raises(ValidationError):
        read_levels([])


def test_a_document_cannot_be_changed() -> None:
    document = PolicyDocument()
    with pytest.raises(ValidationError):
        document.rules = ()  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Level(needed=Decimal("0.5"))


# What is required of recipients

STORED_BEFORE = {"rules": [], "lists": [], "time_zone": "Africa/Lagos"}


def test_a_document_of_an_earlier_release_keeps_its_digest_and_requires_nothing_of_recipients() -> None:
    document = PolicyDocument.model_validate(STORED_BEFORE)
    canonical = json.dumps(STORED_BEFORE, sort_keys=True, separators=(",", ":"))
    assert document.stored() == STORED_BEFORE
    assert document.digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert document.recipients == RecipientRequirements()


REQUIRED: list[dict[str, Any]] = [
    {"approved_only": ["transfer"]},
    {"approved_only": ["withdrawal", "transfer"]},
    {"cooling": {"hours": 24}},
    {"cooling": {"hours": 48}},
    {"cooling": {"hours": 24, "extra_approval": True}},
    {"cooling": {"hours": 24, "ceilings": [{"currency": "NGN", "amount": "5"}]}},
    {"cooling": {"hours": 24, "ceilings": [{"currency": "NGN", "amount": "6"}]}},
    {"cooling": {"hours": 24, "ceilings": [{"currency": "USD", "amount": "5"}]}},
]


def test_the_digest_covers_everything_that_is_required_of_recipients() -> None:
    documents = [PolicyDocument.model_validate({**STORED_BEFORE, "recipients": one}) for one in REQUIRED]
    digests = {PolicyDocument.model_validate(STORED_BEFORE).digest, *(one.digest for one in documents)}
    assert len(digests) == len(REQUIRED) + 1
    for one in documents:
        assert PolicyDocument.model_validate(one.stored()) == one


@pytest.mark.parametrize(
    "members",
    [
        {"approved_only": ["conversion"]},
        {"approved_only": ["batch"]},
        {"cooling": {}},
        {"cooling": {"hours": 0}},
        {"cooling": {"hours": 8761}},
        {"cooling": {"hours": 24, "ceilings": [{"currency": "NGN", "amount": "0"}]}},
        {"cooling": {"hours": 24, "ceilings": [{"currency": "NGN", "amount": str(n)} for n in (1, 2)]}},
        {"networks": []},
    ],
)
def test_requirements_that_mean_nothing_cannot_be_made(members: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PolicyDocument.model_validate({"recipients": members})


def cooling(hours: int, *, extra: bool = False, **ceilings: int) -> Cooling:
    listed = [{"currency": currency, "amount": amount} for currency, amount in ceilings.items()]
    return Cooling.model_validate({"hours": hours, "ceilings": listed, "extra_approval": extra})


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (None, cooling(24, extra=True, NGN=5), cooling(24, extra=True, NGN=5)),
        (cooling(24), cooling(48), cooling(48)),
        (cooling(24, extra=True), cooling(1), cooling(24)),
        (cooling(24, extra=True), cooling(24, extra=True), cooling(24, extra=True)),
        (cooling(24, NGN=5, USD=1), cooling(24, NGN=4, USDT=1), cooling(24, NGN=4)),
        (cooling(24, NGN=5), cooling(48), cooling(48)),
    ],
)
def test_of_two_coolings_the_stricter_applies(
    one: Cooling | None, other: Cooling | None, both: Cooling | None
) -> None:
    first, second = RecipientRequirements(cooling=one), RecipientRequirements(cooling=other)
    assert first.stricter(second) == second.stricter(first) == RecipientRequirements(cooling=both)


def test_of_two_allow_lists_the_kinds_of_both_apply() -> None:
    one = RecipientRequirements(approved_only=("transfer", "withdrawal"))
    other = RecipientRequirements(approved_only=("payment", "transfer"))
    assert one.stricter(other).approved_only == ("withdrawal", "transfer", "payment")
