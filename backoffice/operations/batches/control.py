"""Pause, resume or cancel what is not sent of a batch, and prepare its failed rows again."""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.operations import policy
from backoffice.operations.batches.checking import rules_of
from backoffice.operations.batches.columns import file_with_errors, format_of
from backoffice.operations.batches.files import check_columns, upload_file
from backoffice.operations.errors import BatchClosedError, MaybeExecutedError
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.models.batches import Batch, BatchRow, PayoutFile
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import Status

_AT_ONCE = 50
_APPROVED = (Status.APPROVED, Status.SUCCEEDED)


@transaction.atomic
def pause_batch(batch_id: UUID, *, actor: User) -> Batch:
    """Let no row be released or sent until the batch is resumed. Raises PermissionMissingError, BatchClosedError."""
    batch = _locked(batch_id)
    policy.check_may_pause_batch(actor)
    if batch.paused_at is None:
        batch.paused_by, batch.paused_at = actor, clock.now()
        batch.save(update_fields=["paused_by", "paused_at"])
        audit.record(Action.BATCH_PAUSED, actor=actor, target=batch.operation)
    return batch


@transaction.atomic
def resume_batch(batch_id: UUID, *, actor: User) -> Batch:
    """End the pause. Raises PermissionMissingError, SelfApprovalError, BatchClosedError."""
    batch = _locked(batch_id)
    policy.check_may_resume_batch(actor, batch)
    if batch.paused_at is not None:
        batch.paused_by = batch.paused_at = None
        batch.save(update_fields=["paused_by", "paused_at"])
        audit.record(Action.BATCH_RESUMED, actor=actor, target=batch.operation)
    return batch


@transaction.atomic
def cancel_batch(batch_id: UUID, *, actor: User) -> Batch:
    """Cancel all rows of an approved batch that are not sent: none of them is sent from now on.

    Their operations are closed soon after. Raises PermissionMissingError, BatchClosedError.
    """
    batch = _locked(batch_id)
    policy.check_may_cancel_batch(actor, batch)
    batch.cancelled_by, batch.cancelled_at, batch.is_cancelling = actor, clock.now(), True
    batch.save(update_fields=["cancelled_by", "cancelled_at", "is_cancelling"])
    if batch.operation.status == Status.APPROVED:  # its rows are being made operations
        transition(batch.operation, Status.CANCELLED)
        audit.record(Action.OPERATION_CANCELLED, actor=actor, target=batch.operation)
    audit.record(Action.BATCH_CANCELLED, actor=actor, target=batch.operation)
    return batch


def _locked(batch_id: UUID) -> Batch:
    """An approved batch that is not cancelled, with its operation, both locked. Raises BatchClosedError."""
    operation = Operation.objects.get_locked(batch_id)
    batch = Batch.objects.select_for_update(of=("self",)).get(operation=operation)
    batch.operation = operation
    if operation.status not in _APPROVED or batch.cancelled_at:
        raise BatchClosedError
    return batch


def cancel_due() -> int:
    """Close operations of rows of cancelled batches that are not sent; returns how many."""
    done = 0
    for batch in Batch.objects.filter(is_cancelling=True):
        waiting = Operation.objects.filter(batch_row__batch=batch.pk, status=Status.APPROVED)
        due = dict(waiting.values_list("pk", "reference")[:_AT_ONCE])
        done += sum(run_each_isolated(cancel_row, due, failed=ignore))
        if not _may_still_be_cancelled(batch).exists():
            Batch.objects.filter(pk=batch.pk).update(is_cancelling=False)
    return done


def _may_still_be_cancelled(batch: Batch) -> QuerySet[Operation]:
    """Those that are not sent, and those in flight, which may return to `approved`."""
    return Operation.objects.filter(batch_row__batch=batch.pk, closed_at__isnull=True)


@transaction.atomic
def cancel_row(operation_id: UUID) -> bool:
    """Cancel an operation of a cancelled batch, with its release; False if it is being sent, or may have been."""
    operation = Operation.objects.get_locked(operation_id)
    if operation.status != Status.APPROVED:
        return False
    batch = Batch.objects.select_related("cancelled_by", "operation").get(
        operation__rows__operation=operation
    )
    try:
        transition(operation, Status.CANCELLED)
    except MaybeExecutedError:
        return False
    Release.objects.filter(operation=operation).delete()
    audit.record(
        Action.OPERATION_CANCELLED,
        actor=batch.cancelled_by,
        target=operation,
        batch=batch.operation.reference,
    )
    return True


def failed_rows(batch_id: UUID) -> QuerySet[BatchRow]:
    """The rows whose operations failed, each with its operation, which says why."""
    failed = BatchRow.objects.filter(batch=batch_id, operation__status=Status.FAILED)
    return failed.select_related("operation").order_by("number")


def failed_file(batch: Operation) -> bytes:
    """The failed rows as a file to correct and upload again, with the reason of each. Its format is `format_of_file`.

    Raises BatchClosedError if no row has failed.
    """
    rows = list(failed_rows(batch.pk))
    if not rows:
        raise BatchClosedError
    reasons = (row.operation.reason if row.operation else "" for row in rows)
    with_reasons = zip(map(_cells, rows), reasons, strict=True)
    return file_with_errors(rules_of(rows[0].kind).columns, with_reasons, format_of_file(batch))


def format_of_file(batch: Operation) -> str:
    """The format of the file from which the batch was prepared."""
    return format_of(read_content(batch)[1].file_name)


def _cells(row: BatchRow) -> dict[str, str]:
    """The cells of a file from which this row could have been prepared."""
    kind = KINDS[row.kind]
    payload: Payload = kind.read(row.payload)
    filled = {**kind.initial(payload), "duplicate_reason": payload.duplicate_reason}
    return {name: str(filled.get(name, "")) for name in kind.file_fields}


def retry_failed(batch_id: UUID, *, actor: User, language: str) -> PayoutFile:
    """A new file of the rows that failed, being checked; its batch will name this one.

    Raises PermissionMissingError, and BatchClosedError if no row has failed.
    """
    batch = Operation.objects.get(pk=batch_id)
    content = failed_file(batch)
    kind = KINDS[read_content(batch)[1].row_kind]
    file = upload_file(
        actor=actor,
        kind=kind.name,
        name=f"{batch.reference}-retry.{format_of_file(batch)}",
        content=content,
        language=language,
        retry_of=batch,
    )
    return check_columns(file.pk, actor=actor, mapping={name: name for name in kind.file_fields})
