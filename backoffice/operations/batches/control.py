"""Pause, resume or cancel what is not sent of a batch, and prepare its unpaid rows again."""

from collections.abc import Iterable
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.operations import policy
from backoffice.operations.batches.checking import rules_of
from backoffice.operations.batches.columns import RETRIED_ROW, file_with_errors, format_of
from backoffice.operations.batches.files import check_columns, upload_file
from backoffice.operations.batches.retried_rows import retryable_rows
from backoffice.operations.batches.summary import RowWithoutOperation, outcome_sentence
from backoffice.operations.errors import BatchClosedError, MaybeExecutedError, NothingToRetryError
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS, AnyKind, read_content
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
    """End the pause. Raises PermissionMissingError, AccountRestrictedError, SelfApprovalError, BatchClosedError."""
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

    Their operations are closed soon after. Raises PermissionMissingError, AccountRestrictedError, BatchClosedError.
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


def retry_file(batch: Operation) -> bytes:
    """The rows that can be retried as a file to correct and upload again, with the reason of each. Its format is
    `format_of_file`, and its columns are those of the file of the batch.

    Raises NothingToRetryError if no row can be retried.
    """
    rows = list(retryable_rows(batch.pk))
    if not rows:
        raise NothingToRetryError
    headings = _headings(batch, KINDS[rows[0].kind])
    with_reasons = ((_cells(row, headings), unpaid_reason(row)) for row in rows)
    sheet = rules_of(rows[0].kind).columns.sheet
    return file_with_errors(sheet, list(headings.values()), with_reasons, format_of_file(batch))


def _headings(batch: Operation, kind: AnyKind) -> dict[str, str]:
    """The heading of each field: those of the file of the batch in its order, then the fields that it did not have."""
    file = PayoutFile.objects.filter(pk=batch.pk).only("headers", "mapping").first()
    fields = {heading: name for name, heading in file.mapping.items()} if file else {}
    own = {fields[heading]: heading for heading in file.headers if heading in fields} if file else {}
    found = {name: heading for name, heading in own.items() if name in kind.file_fields}
    for name in (*kind.file_fields, RETRIED_ROW):
        if name not in found and name not in found.values():
            found[name] = name
    return found


def unpaid_reason(row: BatchRow) -> str:
    """Why a row that can be retried was not paid, in words."""
    if row.operation:
        return outcome_sentence(row.operation)
    reason = RowWithoutOperation(row).reason
    if row.duplicate_of is None:
        return reason
    text = gettext("{reason} {reference} was not paid: {outcome}")
    return text.format(
        reason=reason, reference=row.duplicate_of.reference, outcome=outcome_sentence(row.duplicate_of)
    )


def format_of_file(batch: Operation) -> str:
    """The format of the file from which the batch was prepared."""
    return format_of(read_content(batch)[1].file_name)


def _cells(row: BatchRow, headings: Iterable[str]) -> list[str]:
    """The cells of a file from which this row could have been prepared."""
    kind = KINDS[row.kind]
    payload: Payload = kind.read(row.payload)
    filled = {**kind.initial(payload), "duplicate_reason": payload.duplicate_reason, RETRIED_ROW: row.number}
    return [_text(filled.get(name, "")) for name in headings]


def _text(value: object) -> str:
    """A value as a cell. Forms refuse an exponent, which `str` gives small amounts."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def retry_rows(batch_id: UUID, *, actor: User, language: str) -> PayoutFile:
    """A new file of the rows that can be retried, being checked; its batch will name this one.

    Raises PermissionMissingError, and NothingToRetryError if no row can be retried.
    """
    batch = Operation.objects.get(pk=batch_id)
    file = upload_file(
        actor=actor,
        kind=KINDS[read_content(batch)[1].row_kind].name,
        name=f"{batch.reference}-retry.{format_of_file(batch)}",
        content=retry_file(batch),
        language=language,
        retry_of=batch,
    )
    return check_columns(file.pk, actor=actor, mapping=file.mapping)
