"""Submit a checked file for approval: a batch and all of its rows, or all of its recipients as one operation; in one
commit, or nothing.
"""

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import translation

from backoffice.accounts.models import User
from backoffice.core.leases import lock_until_commit
from backoffice.operations import policy
from backoffice.operations.batches.earlier_payments import earlier_payments
from backoffice.operations.batches.files import own_file, recheck_outdated
from backoffice.operations.batches.payout_rows import payment_of
from backoffice.operations.batches.retried_rows import are_retryable
from backoffice.operations.errors import (
    FileNotReadyError,
    FileOutdatedError,
    ImportOutdatedError,
    ReasonMissingError,
)
from backoffice.operations.kinds.base import Debit, MoneyKind
from backoffice.operations.kinds.batch import BatchKind, BatchPayload, currency_totals
from backoffice.operations.kinds.recipient import RecipientKind, RecipientPayload
from backoffice.operations.kinds.recipient_import import (
    RecipientImportKind,
    RecipientImportPayload,
    check_all_applicable,
    row_digest,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import (
    ATTENTION,
    Batch,
    BatchRow,
    FileState,
    ImportedRow,
    PayoutFile,
    PayoutFileRow,
    RowFlag,
    row_operation_id,
    rows_digest,
)
from backoffice.operations.models.operations import Operation, content_digest
from backoffice.operations.workflow.prepare import RECIPIENTS_LOCK, prepare_operation
from backoffice.recipients.models import RecipientType

_AT_ONCE = 500
_NAME_FLAGS = {RowFlag.NAME_CLOSE, RowFlag.NAME_DIFFERENT}


def submit_file(file_id: UUID, *, actor: User) -> Operation:
    """Prepare a batch of all rows of this file. Submitted again, it is the same batch.

    Raises PermissionMissingError, FileNotReadyError, and FileOutdatedError if rows repeat what was prepared or sent
    since the check: then the file is checked again.
    """
    try:
        return _submit_batch(file_id, actor)
    except FileOutdatedError:
        recheck_outdated(file_id, actor=actor)
        raise


@transaction.atomic
def _submit_batch(file_id: UUID, actor: User) -> Operation:
    file = own_file(file_id, actor)
    policy.check_may_prepare(actor, BatchKind.name)
    if file.state == FileState.SUBMITTED:
        return Operation.objects.get(pk=file.pk)
    if not isinstance(KINDS[file.kind], MoneyKind):
        raise FileNotReadyError
    if file.state != FileState.CHECKED or file.error_count or not file.row_count:
        raise FileNotReadyError
    lock_until_commit(RECIPIENTS_LOCK)
    rows = _store_rows(file)
    operation = prepare_operation(
        file.pk,
        actor=actor,
        kind=BatchKind.name,
        payload=_batch_payload(file, rows),
        prepared_from=file.retry_of_id,
    )
    Batch.objects.create(operation=operation, retry_of_id=file.retry_of_id)
    file.rows.all().delete()
    file.state, file.content = FileState.SUBMITTED, b""
    file.save(update_fields=["state", "content"])
    return operation


def _store_rows(file: PayoutFile) -> list[BatchRow]:
    """Store the rows of the batch, which itself is stored after them. Raises FileOutdatedError."""
    retried = list(file.rows.values_list("retried_number", flat=True)) if file.retry_of_id else []
    if file.retry_of_id and not are_retryable(file.retry_of_id, retried):
        raise FileOutdatedError
    stored = []
    for chunk in _chunks(file):
        earlier = earlier_payments({row.recipient_key for row in chunk})
        if any(earlier.problem(payment_of(row)) for row in chunk):
            raise FileOutdatedError
        with translation.override(
            settings.LANGUAGE_CODE
        ):  # what is stored is in one language, whoever prepares it
            stored += BatchRow.objects.bulk_create([_batch_row(file, row) for row in chunk])
    return stored


def _chunks(file: PayoutFile) -> Iterator[list[PayoutFileRow]]:
    rows = file.rows.order_by("number").defer("cells")
    for start in range(0, file.row_count, _AT_ONCE):
        yield list(rows[start : start + _AT_ONCE])


def _batch_row(file: PayoutFile, row: PayoutFileRow) -> BatchRow:
    kind, stored = KINDS[file.kind], row.payload or {}
    payload = kind.read(stored)
    recipient, debit = kind.recipient(payload), kind.debit(payload)
    if debit is None:
        raise ValueError(f"{kind.name} debits nothing")
    return BatchRow(
        batch_id=file.pk,
        number=row.number,
        kind=kind.name,
        payload=stored,
        digest=content_digest(row_operation_id(file.pk, row.number), kind.name, stored),
        flags=row.flags,
        similar=row.similar or None,
        retried_number=row.retried_number,
        attention=sum(ATTENTION[RowFlag(flag)] for flag in row.flags),
        recipient=recipient.name,
        recipient_detail=recipient.detail,
        recipient_key=recipient.key,
        currency=debit.currency,
        amount=debit.amount,
    )


def _batch_payload(file: PayoutFile, rows: list[BatchRow]) -> BatchPayload:
    flags = [set(row.flags) for row in rows]
    return BatchPayload(
        file_name=file.name,
        row_kind=file.kind,
        count=len(rows),
        totals=tuple(currency_totals(Debit(row.currency, row.amount) for row in rows)),
        rows_digest=rows_digest(row.digest for row in rows),
        similar_accounts=sum(RowFlag.SIMILAR_ACCOUNT in each for each in flags),
        new_recipients=sum(RowFlag.NEW_RECIPIENT in each for each in flags),
        names_differ=sum(bool(_NAME_FLAGS & each) for each in flags),
        repeated=sum(RowFlag.REPEATED in each for each in flags),
        retry_of=file.retry_of.reference if file.retry_of else "",
    )


def submit_recipients(file_id: UUID, *, actor: User, reason: str) -> Operation:
    """Prepare the import of all rows of this file. Submitted again, it is the same import.

    Raises PermissionMissingError, ReasonMissingError, FileNotReadyError, and ImportOutdatedError if a recipient is in
    the register since the check: then the file is checked again.
    """
    if not reason.strip():
        raise ReasonMissingError
    try:
        return _submit_import(file_id, actor, reason.strip())
    except ImportOutdatedError:
        recheck_outdated(file_id, actor=actor)
        raise


@transaction.atomic
def _submit_import(file_id: UUID, actor: User, reason: str) -> Operation:
    file = own_file(file_id, actor)
    policy.check_may_prepare(actor, RecipientImportKind.name)
    if file.state == FileState.SUBMITTED:
        return Operation.objects.get(pk=file.pk)
    is_ready = file.state == FileState.CHECKED and file.row_count and not file.error_count
    if file.kind != RecipientKind.name or not is_ready:
        raise FileNotReadyError
    added = [(row, _with_reason(row, reason)) for row in file.rows.order_by("number").defer("cells")]
    check_all_applicable([payload for _, payload in added])
    rows = [_imported_row(file, row, payload) for row, payload in added]
    ImportedRow.objects.bulk_create(rows, batch_size=_AT_ONCE)
    operation = prepare_operation(
        file.pk,
        actor=actor,
        kind=RecipientImportKind.name,
        payload=_import_payload(file, added, rows, reason),
    )
    file.rows.all().delete()
    file.state, file.content = FileState.SUBMITTED, b""
    file.save(update_fields=["state", "content"])
    return operation


def _with_reason(row: PayoutFileRow, reason: str) -> RecipientPayload:
    return RecipientPayload.model_validate({**(row.payload or {}), "reason": reason})


def _imported_row(file: PayoutFile, row: PayoutFileRow, payload: RecipientPayload) -> ImportedRow:
    stored = payload.stored()
    return ImportedRow(
        operation_id=file.pk,
        number=row.number,
        payload=stored,
        digest=row_digest(file.pk, row.number, stored),
        recipient_key=payload.key,
        flags=row.flags,
        similar=row.similar,
        attention=sum(ATTENTION[RowFlag(flag)] for flag in row.flags),
    )


def _import_payload(
    file: PayoutFile,
    added: list[tuple[PayoutFileRow, RecipientPayload]],
    rows: list[ImportedRow],
    reason: str,
) -> RecipientImportPayload:
    types = Counter(payload.type for _, payload in added)
    flags = [set(row.flags) for row in rows]
    return RecipientImportPayload(
        file_name=file.name,
        count=len(rows),
        recipients_digest=rows_digest(row.digest for row in rows),
        bank_accounts=types[RecipientType.BANK],
        addresses=types[RecipientType.ADDRESS],
        users=types[RecipientType.USER],
        similar_accounts=sum(RowFlag.SIMILAR_ACCOUNT in each for each in flags),
        same_names=sum(RowFlag.SAME_NAME in each for each in flags),
        names_differ=sum(bool(_NAME_FLAGS & each) for each in flags),
        reason=reason,
    )
