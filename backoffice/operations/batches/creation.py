"""Make each row of an approved batch an operation of its own, approved by the people who approved the batch.

A chunk of rows in each commit. What stops in between is continued: a row that is an operation is not made one again,
since its operation's id follows from the batch and its number.
"""

from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import translation

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import fault_points
from backoffice.core.background import raise_if_stop_requested
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.core.leases import lock_until_commit
from backoffice.operations import seals
from backoffice.operations.approval import requirements
from backoffice.operations.approval.progress import approvals_of, approved_for
from backoffice.operations.descriptions import Subject
from backoffice.operations.errors import AlteredRecordError
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.transitions import approve_all, transition
from backoffice.operations.models.batches import IS_WAITING_ROW, BatchRow, row_operation_id
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.models.reason_codes import RecordFault
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import TO_SEND, Status
from backoffice.operations.workflow.prepare import RECIPIENTS_LOCK, draft_operation, unused_references

CHUNK = 250
_LINKED_AT_ONCE = 50  # one statement for more takes longer in all


def create_operations(batch_id: UUID) -> bool:
    """Make the rows of an approved batch operations; False if something prevents it. May be called at any time.

    Rows that are not those that were approved raise an incident, and none of their chunk becomes an operation.
    """
    try:
        while _create_chunk(batch_id):
            fault_points.reach("batch.chunk_created")
            raise_if_stop_requested()
    except AlteredRecordError as exc:
        incidents.raise_altered(Operation.objects.get(pk=batch_id), exc)
        return False
    return True


def create_due() -> int:
    """Continue the batches whose message was lost; returns how many."""
    due = Operation.objects.filter(status=Status.APPROVED, batch__isnull=False)
    return sum(run_each_isolated(create_operations, dict(due.values_list("pk", "reference")), failed=ignore))


@transaction.atomic
def _create_chunk(batch_id: UUID) -> bool:
    """Make the next rows operations, and close the batch with the last ones; whether rows are left."""
    batch = Operation.objects.get_locked(batch_id)
    if batch.status != Status.APPROVED:
        return False
    approvals = sorted(approvals_of(batch), key=lambda one: (one.approved_at, one.pk))
    seals.check_record(batch, approvals, None)
    rows = list(batch.rows.filter(IS_WAITING_ROW).order_by("number")[: CHUNK + 1])
    lock_until_commit(RECIPIENTS_LOCK)
    entries = _create(batch, rows[:CHUNK], approvals)
    if len(rows) <= CHUNK:
        transition(batch, Status.SUCCEEDED)
        applied = audit.NewEntry(
            Action.OPERATION_APPLIED, approvals[-1].approver, batch, {"digest": batch.digest}
        )
        entries.append(applied)
    audit.record_all(entries)
    return len(rows) > CHUNK


def _create(batch: Operation, rows: list[BatchRow], approvals: list[Approval]) -> list[audit.NewEntry]:
    operations = _drafts(batch, rows)
    _set_duplicates(rows, operations)
    made = [operation for row, operation in zip(rows, operations, strict=True) if row.operation_id]
    Operation.objects.bulk_create(made)
    Approval.objects.bulk_create(
        [_approval(operation, approval) for operation in made for approval in approvals]
    )
    _link(rows)
    approve_all(made, decided_at=approvals[-1].approved_at)
    return [entry for operation in made for entry in _entries(batch, operation, approvals)]


def _drafts(batch: Operation, rows: list[BatchRow]) -> list[Operation]:
    """The operations of these rows, sealed and not stored. Raises AlteredRecordError for a row with other content."""
    drafts = []
    letter = KINDS[rows[0].kind].letter if rows else ""
    terms = requirements.ApprovalRequirement(batch.required_levels, batch.rule, batch.policy_version)
    references = unused_references(letter, len(rows))
    with translation.override(
        settings.LANGUAGE_CODE
    ):  # what is stored is in one language, whoever approves it
        for row, reference in zip(rows, references, strict=True):
            pk, payload = row_operation_id(batch.pk, row.number), KINDS[row.kind].read(row.payload)
            preparer = batch.preparer
            subject = Subject(pk, KINDS[row.kind], payload, preparer.pk, str(preparer), batch.prepared_at)
            operation = draft_operation(subject, preparer, terms, batch.pk, reference=reference)
            if operation.digest != row.digest:
                raise AlteredRecordError(Refusal.LOG_MISMATCH, [RecordFault.BATCH_ROWS])
            operation.expires_at = batch.expires_at
            operation.make_seal()
            drafts.append(operation)
    return drafts


def _set_duplicates(rows: list[BatchRow], operations: list[Operation]) -> None:
    """Set the operation of each row, or the equal one that may still be sent, because of which there is none."""
    keys = [operation.content_key for operation in operations]
    waiting = Operation.objects.filter(content_key__in=keys, status__in=TO_SEND)
    taken = dict(waiting.values_list("content_key", "pk"))
    for row, operation in zip(rows, operations, strict=True):
        row.duplicate_of_id = taken.get(operation.content_key)
        if row.duplicate_of_id is None:
            row.operation_id = operation.pk
            taken[operation.content_key] = operation.pk


def _link(rows: list[BatchRow]) -> None:
    """Store what became of each row."""
    made = [row for row in rows if row.operation_id]
    BatchRow.objects.bulk_update(made, ["operation"], batch_size=_LINKED_AT_ONCE)
    BatchRow.objects.bulk_update([row for row in rows if row.duplicate_of_id], ["duplicate_of"])


def _approval(operation: Operation, given: Approval) -> Approval:
    """The approval of a row by a person who approved its batch, at that time."""
    approval = Approval(
        operation=operation,
        approver=given.approver,
        preparer=operation.preparer,
        digest=operation.digest,
        approved_at=given.approved_at,
        on_behalf_of=given.on_behalf_of,
        delegation=given.delegation,
    )
    approval.make_seal()
    return approval


def _entries(batch: Operation, operation: Operation, approvals: list[Approval]) -> list[audit.NewEntry]:
    """The same entries as for an operation that is prepared and approved alone, each naming the batch."""
    content = {"digest": operation.digest, "batch": batch.reference}
    terms = {
        "rule": operation.rule,
        "policy_version": operation.policy_version,
        "levels": operation.levels,
    }
    details = {**content, "kind": operation.kind, **terms}
    entries = [audit.NewEntry(Action.OPERATION_PREPARED, operation.preparer, operation, details)]
    for given, approval in enumerate(approvals, start=1):
        status = Status.APPROVED if given >= operation.approvals_needed else Status.PENDING
        details = {**content, "given": given, "needed": operation.approvals_needed, "status": status}
        details |= approved_for(approval)
        entries.append(audit.NewEntry(Action.OPERATION_APPROVED, approval.approver, operation, details))
    return entries
