"""Each integrity check fails when its rule is broken past the services, and only that one."""

import pytest

from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS
from backoffice.operations.states import Status
from tests.operations.monitoring.violations import (
    VIOLATIONS,
    past_every_safeguard,
    unchecked_outcome,
    violated_checks,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_history_has_each_status(history: dict[str, Operation]) -> None:
    reached = {operation.status for operation in history.values()}
    assert reached == set(Status) - {Status.SENDING, Status.REVIEW}


def test_a_history_made_by_the_services_passes_all_checks(history: dict[str, Operation]) -> None:
    assert violated_checks() == set()
    assert set(inspect(full=False).violations) == set()


def test_each_violation_is_found_by_exactly_its_check(history: dict[str, Operation]) -> None:
    seen = {}
    for name, act in VIOLATIONS.items():
        with past_every_safeguard():
            act(history)
            seen[name] = violated_checks()
    assert seen == {name: {name.partition("__")[0]} for name in VIOLATIONS}
    assert violated_checks() == set()


def test_every_rule_has_its_break() -> None:
    of_the_database = {"database_rule_altered"}  # tests/operations/monitoring/test_database_rules.py
    violated = {name.partition("__")[0] for name in VIOLATIONS} | of_the_database
    assert violated == {rule.name for rule in INTEGRITY_CHECKS}


def test_a_violation_names_the_operation(history: dict[str, Operation]) -> None:
    with past_every_safeguard():
        unchecked_outcome(history)
        assert inspect(full=False).violations["unchecked_outcome"] == {
            "count": 1,
            "references": [history["unknown"].reference],
        }
