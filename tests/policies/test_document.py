"""What a document can and cannot say."""

import json
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from backoffice.policies.document import (
    LAST_RULE,
    Level,
    PolicyDocument,
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
        {"levels": [{"needed": 1}], "when": {"hours": {"start": "17:00", "end": "09:00"}}},
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
