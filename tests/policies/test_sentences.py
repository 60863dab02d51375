"""Rules in words, and two versions beside each other."""

from typing import Any

import pytest

from backoffice.policies.document import Level, PolicyDocument, Rule
from backoffice.policies.sentences import Difference, compare, last_rule_sentence, rule_sentence

NGN = {"codes": ["NGN"]}
DIRECTORS, TREASURY = {"group": {"id": 1, "name": "Directors"}}, {"group": {"id": 2, "name": "Treasury"}}


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            {
                "when": {
                    "kinds": ["withdrawal"],
                    "currencies": NGN,
                    "amount": {"above": 5_000_000},
                    "recipient": "new",
                },
                "levels": [{"needed": 1, "of": TREASURY}, {"needed": 2, "of": DIRECTORS}],
            },
            "Withdrawals above NGN 5,000,000.00 to new recipients need 1 of Treasury, then 2 of Directors",
        ),
        (
            {"when": {"kinds": ["withdrawal", "transfer"]}, "levels": [{"needed": 1}]},
            "Withdrawals and Transfers need 1 other person",
        ),
        (
            {"when": {"hours": {"weekdays": [5, 6]}}, "refuse": "Closed at weekends"},
            "All payments and changes at the provider prepared on Sat, Sun, 00:00 to 24:00 (Africa/Lagos) are refused: "
            "“Closed at weekends”",
        ),
        (
            {"when": {"currencies": NGN, "recipient": "new"}, "refuse": "Not in naira"},
            "All payments in NGN to new recipients are refused: “Not in naira”",
        ),
        (
            {
                "when": {"hours": {"weekdays": [4], "start": "22:00", "end": "06:00"}},
                "levels": [{"needed": 2}],
            },
            "All operations prepared on Fri, 22:00 to 06:00 the next day (Africa/Lagos) need 2 other people",
        ),
        (
            {
                "when": {"currencies": NGN, "total": {"window": "day", "of": "preparer", "above": 100}},
                "levels": [{"needed": 1, "of": {"role": "Administrator"}}],
            },
            "All operations in NGN that bring their preparer's 24-hour total above NGN 100.00 need 1 of role "
            "Administrator",
        ),
        (
            {
                "when": {
                    "currencies": {"codes": ["NGN", "USD"], "other_than": True},
                    "more_rows_than": 100,
                    "preparer": {"named": [{"id": 3, "name": "Tunde Bello"}]},
                },
                "levels": [
                    {"needed": 2, "of": {"named": [{"id": 4, "name": "A B"}, {"id": 5, "name": "C D"}]}}
                ],
            },
            "All operations in currencies other than NGN and USD prepared by Tunde Bello in batches of more than 100 "
            "rows need 2 of A B, C D",
        ),
    ],
)
def test_a_rule_is_one_sentence(rule: dict[str, Any], sentence: str) -> None:
    assert rule_sentence(Rule.model_validate(rule), "Africa/Lagos") == sentence


def test_the_last_rule_in_words() -> None:
    assert last_rule_sentence((Level(needed=1),)) == "Everything else needs 1 other person"


def test_two_versions_beside_each_other() -> None:
    def rule(needed: int, *kinds: str) -> Rule:
        return Rule.model_validate({"when": {"kinds": kinds}, "levels": [{"needed": needed}]})

    old = PolicyDocument(rules=(rule(1, "withdrawal"), rule(2, "transfer"), rule(3, "payment")))
    new = PolicyDocument(
        rules=(rule(1, "withdrawal"), rule(3, "transfer"), rule(3, "payment"), rule(1, "batch"))
    )
    found = compare(old, new)
    assert [one.difference for one in found] == [
        Difference.SAME,
        Difference.CHANGED,
        Difference.SAME,
        Difference.ADDED,
    ]
    assert found[1].old == "2. Transfers need 2 other people"
    assert found[1].new == "2. Transfers need 3 other people"
    assert found[3].old == ""
    assert compare(new, old)[3].difference == Difference.REMOVED
