"""Raise, list and acknowledge incidents; acknowledge changes of accounts that one person made alone (break-glass).

Neither operations nor attempts are changed here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import plain
from backoffice.audit.models import CheckpointDestination
from backoffice.core import clock
from backoffice.ledger.models import Transaction
from backoffice.operations import permissions, policy
from backoffice.operations.errors import (
    AlreadyAcknowledgedError,
    AlteredRecordError,
    NoteMissingError,
    OwnAccountError,
)
from backoffice.operations.models.monitoring import Incident, Pause
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import IncidentKind

PROCESSING = "processing"


@transaction.atomic
def raise_incident(operation: Operation, *, kind: IncidentKind, evidence: Mapping[str, object]) -> Incident:
    """Record evidence that contradicts an operation's record. The operation is not changed.

    The same evidence is stored once, whether acknowledged or not. While the incident is open, it is nothing new
    that a transaction in it is no longer `processing`, or that fewer faults are left. Different evidence of the
    same kind raises a further incident that refers to the last one; earlier incidents are never changed.
    """
    fields = _stored(evidence)

    def is_known(earlier: Incident) -> bool:
        return earlier.evidence == fields or (earlier.is_open and _is_known(earlier.evidence, fields))

    return _raise_once(fields, is_known, operation=operation, kind=kind)


def _stored(evidence: Mapping[str, object]) -> dict[str, Any]:
    return {name: plain(value) for name, value in evidence.items()}


def _raise_once(evidence: dict[str, Any], is_known: Callable[[Incident], bool], **about: object) -> Incident:
    """The incident that has this evidence already, or a new one after the last of those about the same.

    Follows the chain of earlier incidents to its end. When two callers raise one at once, the unique indexes decide
    which is next.
    """
    last: Incident | None = None
    while True:
        defaults = {"evidence": evidence, "at": clock.now()}
        incident, is_new = Incident.objects.get_or_create(**about, further_to=last, defaults=defaults)
        if is_new:
            _audit_raised(incident)
        if is_new or is_known(incident):
            return incident
        last = incident


def raise_altered(operation: Operation, reason: AlteredRecordError) -> None:
    """Record that the operation's rows are not those that people made with Countersign."""
    raise_incident(operation, kind=IncidentKind.ALTERED_RECORD, evidence={"faults": reason.faults})


def _is_known(before: Mapping[str, object], evidence: Mapping[str, object]) -> bool:
    match before, evidence:
        case {"in_list": {"status": "processing", **listed}}, {"in_list": {"status": str(status)}}:
            return evidence == {**before, "in_list": {**listed, "status": status}}
        case {"faults": [*known]}, {"faults": [*faults]}:
            return all(fault in known for fault in faults)
    return before == evidence


@transaction.atomic
def raise_for_transaction(listed: Transaction, *, evidence: Mapping[str, object]) -> Incident:
    """Record a transaction at the provider that belongs to no operation.

    One incident per transaction, and a further one whenever its amount, currency or status has changed since:
    one acknowledged for a small or failed transaction must not hide what it has become. From `processing`, a
    change of status alone raises none.
    """
    fields = _stored(evidence)
    return _raise_once(
        fields,
        lambda earlier: isinstance(earlier.evidence, dict) and _is_known_evidence(earlier.evidence, fields),
        transaction=listed,
        kind=IncidentKind.UNRECOGNISED,
    )


def _is_known_evidence(before: Mapping[str, object], evidence: Mapping[str, object]) -> bool:
    is_of_its_status = before.get("status") in (evidence.get("status"), PROCESSING)
    return is_of_its_status and all(before.get(name) == evidence.get(name) for name in ("currency", "amount"))


def raise_for_pause(
    pause: Pause, *, evidence: Mapping[str, object], kind: IncidentKind = IncidentKind.DATABASE_RESTORED
) -> Incident:
    """Record, inside the caller's transaction, the finding because of which payments are paused.

    A second finding during the same pause raises a further incident.
    """
    last = Incident.objects.filter(pause=pause, followed_by=None).first()
    incident = Incident.objects.create(
        pause=pause, kind=kind, further_to=last, evidence=_stored(evidence), at=clock.now()
    )
    _audit_raised(incident)
    return incident


@transaction.atomic
def raise_for_destination(destination: CheckpointDestination) -> Incident:
    """Record that a destination lacks checkpoints of the audit log, once until it gets one again."""
    evidence = _stored({"undelivered": destination.position + 1, "problem": destination.problem})
    return _raise_once(
        evidence,
        lambda earlier: (
            isinstance(earlier.evidence, dict)
            and earlier.evidence.get("undelivered") == evidence["undelivered"]
        ),
        destination=destination,
        kind=IncidentKind.CHECKPOINT_OVERDUE,
    )


def _audit_raised(incident: Incident) -> None:
    audit.record(
        Action.INCIDENT_RAISED,
        actor=None,
        target=incident.subject,
        incident=incident.kind,
        evidence=incident.evidence,
        further_to=incident.further_to_id,
    )


@transaction.atomic
def acknowledge_incident(incident_id: int, *, actor: User, note: str) -> Incident:
    """Acknowledge an incident with a note; it stays on record and no longer counts as open.

    Raises PermissionMissingError, AccountRestrictedError, NoteMissingError, and AlreadyAcknowledgedError.
    """
    policy.check_permission(actor, permissions.ACKNOWLEDGE)
    if not note.strip():
        raise NoteMissingError
    # Without locking its key: whoever raises a further incident has locked the audit log, and refers to this one.
    found = Incident.objects.select_for_update(of=("self",), no_key=True).select_related(
        "operation", "transaction", "pause", "destination"
    )
    incident = found.get(pk=incident_id)
    updated = Incident.objects.filter(pk=incident_id, acknowledged_at__isnull=True).update(
        acknowledged_by=actor, acknowledged_at=clock.now(), note=note.strip()
    )
    if updated != 1:
        raise AlreadyAcknowledgedError
    incident.refresh_from_db(fields=["acknowledged_by", "acknowledged_at", "note"])
    audit.record(
        Action.INCIDENT_ACKNOWLEDGED,
        actor=actor,
        target=incident.subject,
        incident=incident.kind,
        note=incident.note,
    )
    return incident


@transaction.atomic
def acknowledge_break_glass(change_id: int, *, actor: User, note: str) -> BreakGlassChange:
    """Acknowledge a change of another person's account by one person alone. The restriction does not end.

    Raises PermissionMissingError, AccountRestrictedError, OwnAccountError, NoteMissingError, and
    AlreadyAcknowledgedError.
    """
    found = BreakGlassChange.objects.select_for_update(of=("self",), no_key=True).select_related("user")
    change = found.get(pk=change_id)
    policy.check_permission(actor, permission_to_acknowledge(actor, change))
    if not note.strip():
        raise NoteMissingError
    if change.is_about(actor):
        raise OwnAccountError
    if not change.is_open:
        raise AlreadyAcknowledgedError
    change.acknowledged_by, change.acknowledged_at, change.note = actor, clock.now(), note.strip()
    change.save(update_fields=["acknowledged_by", "acknowledged_at", "note"])
    audit.record(
        Action.BREAK_GLASS_ACKNOWLEDGED,
        actor=actor,
        target=change.user,
        change=change.change,
        reason=change.reason,
        note=change.note,
    )
    return change


def permission_to_acknowledge(person: User, change: BreakGlassChange) -> str:
    """The permission to acknowledge incidents; for the invitation of the second administrator, that of auditors
    suffices.
    """
    if change.is_break_glass or person.has_perm(permissions.ACKNOWLEDGE):
        return permissions.ACKNOWLEDGE
    return "audit.view_entry"


def all_incidents() -> QuerySet[Incident]:
    """Every incident with what it is about, its predecessor and who acknowledged them, the newest first."""
    about = ("operation", "transaction", "pause__ended_by", "destination")
    return Incident.objects.select_related(
        *about, "acknowledged_by", "further_to__acknowledged_by", "followed_by"
    )


def open_incidents() -> QuerySet[Incident]:
    """Incidents that are not acknowledged yet."""
    return all_incidents().filter(acknowledged_at__isnull=True)
