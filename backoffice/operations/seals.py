"""Whether an operation, its approvals and its release are those that people made with Countersign.

Two things are checked, because anyone who has the database alone can write every row: each row has a valid seal, which
needs a key outside the database, and the audit log has the same content and the same people. Everything that
takes effect by approval is checked at that moment, and every open operation once a minute.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import UUID

from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import SealedRow, SealState
from backoffice.operations.errors import AlteredRecordError, Refusal
from backoffice.operations.models.operations import Approval, Operation, Release
from backoffice.operations.models.reason_codes import RecordFault

_RECORDED = (
    Action.OPERATION_PREPARED,
    Action.OPERATION_APPROVED,
    Action.OPERATION_RELEASED,
    Action.OPERATION_RELEASE_RENEWED,
    Action.OPERATION_CLAIMED,
)
_SENDING = {Action.OPERATION_RELEASED, Action.OPERATION_RELEASE_RENEWED, Action.OPERATION_CLAIMED}
_CLOSING = (
    Action.OPERATION_REJECTED,
    Action.OPERATION_CANCELLED,
    Action.OPERATION_EXPIRED,
    Action.OPERATION_SUCCEEDED,
    Action.OPERATION_FAILED,
    Action.OPERATION_RESOLVED,
    Action.OPERATION_APPLIED,
)


def check_record(operation: Operation, approvals: Sequence[Approval], release: Release | None) -> None:
    """Raises AlteredRecordError unless each row has a valid seal and the audit log agrees with it.

    Pass the rows that are acted on, not others read again: the database could show different ones.
    """
    for approval in approvals:
        approval.operation = operation
    if release is not None:
        release.operation = operation
    unsealed = _seal_faults(operation, approvals, release)
    unlogged = _log_faults(operation, approvals, release, _logged([operation.pk])[operation.pk])
    if unsealed or unlogged:
        code = Refusal.SEAL_INVALID if unsealed else Refusal.LOG_MISMATCH
        raise AlteredRecordError(code, [*unsealed, *unlogged])


def altered_operations(operations: Sequence[UUID]) -> list[Operation]:
    """Those of these operations that are open and do not pass `check_record`."""
    found = Operation.objects.filter(pk__in=operations, closed_at__isnull=True).order_by("reference")
    rows = list(found.select_related("release").prefetch_related("approvals"))
    logged = _logged([operation.pk for operation in rows])
    return [operation for operation in rows if _has_fault(operation, logged[operation.pk])]


def _has_fault(operation: Operation, entries: Sequence[Entry]) -> bool:
    approvals, release = list(operation.approvals.all()), getattr(operation, "release", None)
    return bool(
        _seal_faults(operation, approvals, release) or _log_faults(operation, approvals, release, entries)
    )


def _seal_faults(
    operation: Operation, approvals: Sequence[Approval], release: Release | None
) -> list[RecordFault]:
    """In a fixed order, so that equal faults are equal evidence."""
    sealed: list[tuple[RecordFault, list[SealedRow]]] = [
        (RecordFault.OPERATION_SEAL, [operation]),
        (RecordFault.APPROVAL_SEAL, list(approvals)),
        (RecordFault.RELEASE_SEAL, [release] if release else []),
    ]
    faults = []
    for fault, rows in sealed:
        states = {row.seal_state() for row in rows}
        if states & {SealState.MISSING, SealState.WRONG}:
            faults.append(fault)
        if SealState.KEY_UNKNOWN in states and RecordFault.SEAL_KEY_UNKNOWN not in faults:
            faults.append(RecordFault.SEAL_KEY_UNKNOWN)
    return faults


def _log_faults(
    operation: Operation, approvals: Sequence[Approval], release: Release | None, entries: Sequence[Entry]
) -> list[RecordFault]:
    """Where the log has other content, other people or another end than the rows."""
    faults = []
    prepared = _recorded(entries, Action.OPERATION_PREPARED, "digest", "kind", "rule")
    if prepared != [[operation.preparer_id, operation.current_digest(), operation.kind, operation.rule]]:
        faults.append(RecordFault.LOGGED_PREPARATION)
    approved = _recorded(entries, Action.OPERATION_APPROVED, "digest", "needed")
    given = [[one.approver_id, operation.digest, operation.approvals_needed] for one in approvals]
    if sorted(approved, key=str) != sorted(given, key=str):
        faults.append(RecordFault.LOGGED_APPROVALS)
    if release is not None and not _is_released_by(release, operation, entries):
        faults.append(RecordFault.LOGGED_RELEASE)
    if not operation.is_closed and any(entry.action in _CLOSING for entry in entries):
        faults.append(RecordFault.LOGGED_CLOSING)
    return faults


def _is_released_by(release: Release, operation: Operation, entries: Sequence[Entry]) -> bool:
    """Whether the newest entry about sending is this release; a release that was claimed is used up.

    One that was renewed after a refused code is that of the person who released it last.
    """
    by_person = _recorded(entries, Action.OPERATION_RELEASED, "digest")[-1:]
    sending = [entry.action for entry in entries if entry.action in _SENDING]
    is_waiting = sending[-1:] in ([Action.OPERATION_RELEASED], [Action.OPERATION_RELEASE_RENEWED])
    return is_waiting and by_person == [[release.released_by_id, operation.digest]]


def _recorded(entries: Iterable[Entry], action: Action, *names: str) -> list[list[object]]:
    """Who acted, and these members of the detail, for each entry of this action."""
    found = []
    for entry in entries:
        if entry.action == action:
            detail = entry.detail if isinstance(entry.detail, dict) else {}
            found.append([entry.actor_id, *map(detail.get, names)])
    return found


def _logged(operations: Sequence[UUID]) -> dict[UUID, list[Entry]]:
    """The entries about what was prepared, approved, released, claimed and closed, in their order, in one query."""
    entries = Entry.objects.filter(
        target_type=Operation._meta.label_lower,
        target_id__in=[str(pk) for pk in operations],
        action__in=[*_RECORDED, *_CLOSING],
    ).only("position", "target_id", "action", "actor_id", "detail")
    found: dict[UUID, list[Entry]] = defaultdict(list)
    for entry in entries.order_by("position"):
        found[UUID(entry.target_id)].append(entry)
    return found
