"""Rows and entries that only someone writes who has the whole database, and that no check can read: each is reported,
and keeps no other check and no other row from being treated as usual.
"""

from collections.abc import Callable

import pytest
from django.db import OperationalError, connection, transaction

from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.audit.verification import verify_chain
from backoffice.operations.models.monitoring import Incident, Inspection
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.monitoring import inspection
from backoffice.operations.monitoring.inspection import inspect, system_health
from backoffice.operations.monitoring.integrity_checks import (
    INTEGRITY_CHECKS,
    InspectionScope,
    IntegrityCheck,
)
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation
from tests.append_only.triggers import lifted
from tests.operations.forgeries import (
    alter_content,
    forge_entry,
    make_entry_unreadable,
    make_unreadable,
)

pytestmark = pytest.mark.django_db(transaction=True)
OPERATION, PERSON = "operations.operation", "accounts.user"


def roles_of_no_person(_history: dict[str, Operation]) -> str:
    forge_entry(Action.STAFF_ROLES_CHANGED, PERSON, "x", {"after": []})
    return "unrecorded_right"


def roles_without_a_detail(history: dict[str, Operation]) -> str:
    forge_entry(Action.STAFF_ROLES_CHANGED, PERSON, str(history["released"].preparer_id), [])
    return "unrecorded_right"


def roles_that_are_objects(history: dict[str, Operation]) -> str:
    forge_entry(Action.STAFF_ROLES_CHANGED, PERSON, str(history["released"].preparer_id), {"after": [{}]})
    return "unrecorded_right"


def groups_that_are_a_number(history: dict[str, Operation]) -> str:
    person = str(history["released"].preparer_id)
    forge_entry(Action.STAFF_GROUPS_CHANGED, PERSON, person, {"group_ids": 5})
    return "unrecorded_right"


def a_status_that_is_an_object(history: dict[str, Operation]) -> str:
    target = str(history["succeeded"].pk)
    forge_entry(Action.OPERATION_APPROVED, OPERATION, target, {"status": {}})
    return "unrecorded_transition"


def a_delegation_without_a_detail(_history: dict[str, Operation]) -> str:
    forge_entry(Action.DELEGATION_AGREED, "policies.delegation", str(Delegation.objects.get().pk), [])
    return "altered_delegation"


def a_policy_without_a_detail(_history: dict[str, Operation]) -> str:
    forge_entry(Action.POLICY_IN_EFFECT, "policies.policyversion", "9", [])
    return "altered_policy"


UNREADABLE: list[Callable[[dict[str, Operation]], str]] = [
    roles_of_no_person,
    roles_without_a_detail,
    roles_that_are_objects,
    groups_that_are_a_number,
    a_status_that_is_an_object,
    a_delegation_without_a_detail,
    a_policy_without_a_detail,
]


@pytest.mark.parametrize("forge", UNREADABLE, ids=lambda forge: forge.__name__)
def test_an_unreadable_entry_is_reported_and_ends_no_check(
    history: dict[str, Operation], forge: Callable[[dict[str, Operation]], str]
) -> None:
    released = history["released"]
    alter_content(released, amount="9000.00")
    reported = forge(history)
    assert verify_chain().is_intact
    found = inspect(full=False).violations
    assert found[reported]["count"]
    assert "error" not in found[reported], "the reader itself reports it"
    assert "altered_record" in found
    assert Inspection.objects.get().violations == found
    assert not Release.objects.filter(operation=released).exists()
    assert Incident.objects.get(kind=IncidentKind.ALTERED_RECORD).operation == released


def test_an_unreadable_operation_is_reported_and_hides_no_other(history: dict[str, Operation]) -> None:
    unreadable, altered = history["approved"], history["released"]
    make_unreadable(unreadable)
    alter_content(altered, amount="9000.00")
    both = sorted([unreadable.reference, altered.reference])
    for _ in range(2):  # also while the unreadable one is skipped
        found = inspect(full=False).violations
        assert found["altered_record"]["references"] == both
        assert found["content_changed"]["references"] == [unreadable.reference]
        assert not any("error" in violation for violation in found.values())
    assert not Release.objects.filter(operation=altered).exists()
    incidents = Incident.objects.filter(kind=IncidentKind.ALTERED_RECORD)
    assert {incident.operation for incident in incidents} == {unreadable, altered}


def test_an_unreadable_release_is_reported_and_hides_no_other(history: dict[str, Operation]) -> None:
    unreadable, altered = history["released"], history["approved"]
    make_unreadable(Release.objects.get(operation=unreadable), "look_alikes")
    alter_content(altered, amount="9000.00")
    both = sorted([unreadable.reference, altered.reference])
    for _ in range(2):  # also while the unreadable one is skipped
        found = inspect(full=False).violations
        assert found["altered_record"]["references"] == both
        assert "error" not in found["altered_record"]
    assert Incident.objects.get(kind=IncidentKind.ALTERED_RECORD).operation == altered


def test_an_unreadable_entry_hides_no_unrecorded_transition(history: dict[str, Operation]) -> None:
    unreadable, skipped = history["failed"], history["pending"]
    entries = Entry.objects.filter(target_id=str(unreadable.pk), action=Action.OPERATION_FAILED)
    make_entry_unreadable(entries.get())
    with lifted(connection):
        Operation.objects.filter(pk=skipped.pk).update(status=Status.APPROVED)
    found = inspect(full=False).violations["unrecorded_transition"]
    assert found["references"] == sorted([unreadable.reference, skipped.reference])
    assert "error" not in found


def replaced(monkeypatch: pytest.MonkeyPatch, act: Callable[[InspectionScope], list[str]]) -> IntegrityCheck:
    """Put this in the place of the function of the first check."""
    first, *others = INTEGRITY_CHECKS
    check = IntegrityCheck(first.name, first.sentence, act)
    monkeypatch.setattr(inspection, "INTEGRITY_CHECKS", (check, *others))
    return check


def test_a_check_that_fails_is_a_violation_and_the_others_are_checked(
    history: dict[str, Operation], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_scope: InspectionScope) -> list[str]:
        raise KeyError("status")

    check = replaced(monkeypatch, fail)
    alter_content(history["released"], amount="9000.00")
    report = inspect(full=False)
    assert report.violations[check.name] == {"count": 1, "references": [], "error": "KeyError"}
    assert f"{check.name}: 1 violation: could not be checked (KeyError)" in map(str, report.findings)
    assert any(one.exc_info for one in caplog.records if check.name in one.getMessage())
    assert not Release.objects.exists()
    [first, *_] = system_health().violations
    assert (first.rule, first.count, first.error) == (check.name, 1, "KeyError")


def test_what_a_check_found_is_kept_if_it_fails_afterwards(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = iter([["OP-1", "OP-2"], ["OP-1"]])
    check = replaced(monkeypatch, lambda _scope: next(passes))
    assert inspect(full=False).violations[check.name] == {
        "count": 1,
        "references": ["OP-1"],
        "error": "StopIteration",
    }


def test_a_lost_connection_is_no_violation(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = iter([OperationalError("the connection is lost"), None])

    def fail_once(_scope: InspectionScope) -> list[str]:
        if error := next(passes):
            raise error
        return []

    check = replaced(monkeypatch, fail_once)
    assert check.name not in inspect(full=False).violations


def test_an_unavailable_database_ends_the_inspection(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_scope: InspectionScope) -> list[str]:
        raise OperationalError("the connection is lost")

    replaced(monkeypatch, fail)
    monkeypatch.setattr(inspection, "is_database_unavailable", lambda exc: True)
    with pytest.raises(OperationalError):
        inspect(full=False)
    assert not Inspection.objects.exists()


def test_an_error_in_a_transaction_ends_the_inspection(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_scope: InspectionScope) -> list[str]:
        raise OperationalError("the statement was cancelled")

    replaced(monkeypatch, fail)
    with pytest.raises(OperationalError), transaction.atomic():
        inspect(full=False)


@pytest.mark.parametrize("stored", [[], {"sent_again": 5}, {"sent_again": {"references": [[]]}}])
def test_an_unreadable_result_of_the_last_inspection_is_replaced(db: None, stored: object) -> None:
    inspect(full=False)
    Inspection.objects.update(violations=stored)
    assert system_health().violations == []
    assert inspect(full=False).violations == {}
