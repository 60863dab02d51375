"""Incidents: raised once, acknowledged once with a note, and changing nothing else."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.errors import AlreadyAcknowledgedError, NoteMissingError, PermissionMissingError
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import IncidentKind

KIND = IncidentKind.SECOND_DEBIT


@pytest.fixture
def incident(operation: Operation) -> Incident:
    return incidents.raise_incident(operation, kind=KIND, evidence={"transaction": "T-1"})


def actions(operation: Operation) -> list[str]:
    entries = Entry.objects.filter(target_id=str(operation.pk)).order_by("position")
    return list(entries.values_list("action", flat=True))


def test_the_same_evidence_is_reported_once_whether_or_not_acknowledged(
    incident: Incident, operation: Operation, approver: User
) -> None:
    again = incidents.raise_incident(operation, kind=KIND, evidence={"transaction": "T-1"})
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Looked at")
    once_more = incidents.raise_incident(operation, kind=KIND, evidence={"transaction": "T-1"})
    assert again == once_more == incident
    assert actions(operation) == [
        Action.OPERATION_PREPARED,
        Action.INCIDENT_RAISED,
        Action.INCIDENT_ACKNOWLEDGED,
    ]


def test_new_evidence_after_an_acknowledgement_raises_another_incident(
    incident: Incident, operation: Operation, approver: User
) -> None:
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Refunded")
    before = Incident.objects.values().get()
    further = incidents.raise_incident(operation, kind=KIND, evidence={"transaction": "T-2"})
    assert (further.is_open, further.further_to, further.evidence) == (True, incident, {"transaction": "T-2"})
    assert Incident.objects.filter(pk=incident.pk).values().get() == before
    raised = Entry.objects.filter(action=Action.INCIDENT_RAISED).latest("position")
    assert (raised.detail["further_to"], raised.detail["evidence"]) == (incident.pk, further.evidence)


def test_evidence_that_alternates_raises_each_once(incident: Incident, operation: Operation) -> None:
    raised = [
        incidents.raise_incident(operation, kind=KIND, evidence={"transaction": transaction_id})
        for transaction_id in ("T-2", "T-1", "T-3", "T-2", "T-1")
    ]
    assert Incident.objects.count() == 3
    assert [one.evidence["transaction"] for one in raised] == ["T-2", "T-1", "T-3", "T-2", "T-1"]
    assert raised[2].further_to == raised[0]


def test_another_contradiction_raises_another_incident(incident: Incident, operation: Operation) -> None:
    assert incidents.raise_incident(operation, kind=IncidentKind.NOT_LISTED, evidence={}) != incident


def test_the_database_allows_one_incident_of_each_kind_and_evidence(incident: Incident) -> None:
    fields: dict[str, Any] = {
        "operation": incident.operation,
        "kind": incident.kind,
        "evidence": {},
        "at": incident.at,
    }
    Incident(**fields, further_to=incident).save()
    for twin in (Incident(**fields), Incident(**fields, further_to=incident)):
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save()


def test_an_incident_does_not_change_the_operation(operation: Operation) -> None:
    before = Operation.objects.filter(pk=operation.pk).values().get()
    incidents.raise_incident(operation, kind=KIND, evidence={"transaction": "T-1"})
    assert Operation.objects.filter(pk=operation.pk).values().get() == before


def test_unstorable_text_does_not_prevent_an_incident(operation: Operation) -> None:
    raised = incidents.raise_incident(operation, kind=KIND, evidence={"answer": "a\x00b"})
    raised.refresh_from_db()
    assert raised.evidence == {"answer": "a\ufffdb"}


def test_an_approver_can_acknowledge_an_incident(incident: Incident, approver: User) -> None:
    seen = incidents.acknowledge_incident(incident.pk, actor=approver, note=" Refunded by the service ")
    assert (seen.acknowledged_by, seen.note, seen.is_open) == (approver, "Refunded by the service", False)
    entry = Entry.objects.get(action=Action.INCIDENT_ACKNOWLEDGED)
    assert (entry.actor_id, entry.detail) == (
        approver.pk,
        {"incident": KIND, "note": "Refunded by the service"},
    )


def test_an_incident_is_acknowledged_once(incident: Incident, approver: User, administrator: User) -> None:
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Looked at")
    with pytest.raises(AlreadyAcknowledgedError):
        incidents.acknowledge_incident(incident.pk, actor=administrator, note="Looked at, too")
    assert Incident.objects.get().note == "Looked at"


def test_an_acknowledgement_needs_a_note(incident: Incident, approver: User) -> None:
    with pytest.raises(NoteMissingError):
        incidents.acknowledge_incident(incident.pk, actor=approver, note="  ")
    assert Incident.objects.get().is_open


@pytest.mark.parametrize("who", ["preparer", "auditor", "outsider"])
def test_other_roles_cannot_acknowledge(who: str, incident: Incident, request: pytest.FixtureRequest) -> None:
    with pytest.raises(PermissionMissingError):
        incidents.acknowledge_incident(incident.pk, actor=request.getfixturevalue(who), note="Fine")
    assert Incident.objects.get().is_open


def test_a_final_status_raises_nothing_while_the_incident_is_open_and_another_once_it_is_closed(
    operation: Operation, approver: User
) -> None:
    def raised(status: str) -> Incident:
        return incidents.raise_incident(operation, kind=KIND, evidence={"in_list": {"status": status}})

    first = raised("processing")
    assert raised("fulfilled") == first
    incidents.acknowledge_incident(first.pk, actor=approver, note="It will be cancelled, they say")
    assert raised("processing") == first
    further = raised("fulfilled")
    assert (further.is_open, further.further_to) == (True, first)
