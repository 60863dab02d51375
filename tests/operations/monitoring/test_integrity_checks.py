"""Every rule of what must always hold goes red when the database is broken past the services, and only that one."""

import pytest

from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS
from backoffice.operations.states import Status
from tests.operations.monitoring.violations import BREAKS, past_every_safeguard, red, unchecked_outcome

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_history_has_each_status(history: dict[str, Operation]) -> None:
    reached = {operation.status for operation in history.values()}
    assert reached == set(Status) - {Status.SENDING, Status.REVIEW}


def test_what_the_services_did_breaks_no_rule(history: dict[str, Operation]) -> None:
    assert red() == set()
    assert set(inspect(full=False).violations) == set()


def test_each_break_turns_exactly_its_rule_red(history: dict[str, Operation]) -> None:
    seen = {}
    for name, act in BREAKS.items():
        with past_every_safeguard():
            act(history)
            seen[name] = red()
    assert seen == {name: {name.partition("__")[0]} for name in BREAKS}
    assert red() == set()


def test_every_rule_has_its_break() -> None:
    assert {name.partition("__")[0] for name in BREAKS} == {rule.name for rule in INTEGRITY_CHECKS}


def test_a_violation_names_the_operation(history: dict[str, Operation]) -> None:
    with past_every_safeguard():
        unchecked_outcome(history)
        assert inspect(full=False).violations == {
            "unchecked_outcome": {"count": 1, "references": [history["unknown"].reference]}
        }
