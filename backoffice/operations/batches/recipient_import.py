"""Submit a checked file of recipients for approval: all of its rows as one operation, or nothing."""

from collections import Counter
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.operations import policy
from backoffice.operations.batches.files import own_file, recheck_outdated
from backoffice.operations.errors import FileNotReadyError, ImportOutdatedError, ReasonMissingError
from backoffice.operations.kinds.recipient import RecipientKind, RecipientPayload
from backoffice.operations.kinds.recipient_import import (
    RecipientImportKind,
    RecipientImportPayload,
    check_all_applicable,
    row_digest,
)
from backoffice.operations.models.batches import (
    ATTENTION,
    FileState,
    ImportedRow,
    PayoutFile,
    PayoutFileRow,
    RowFlag,
    rows_digest,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow.prepare import prepare_operation
from backoffice.recipients.models import RecipientType

_AT_ONCE = 500
_NAME_FLAGS = {RowFlag.NAME_CLOSE, RowFlag.NAME_DIFFERENT}


def submit_recipients(file_id: UUID, *, actor: User, reason: str) -> Operation:
    """Prepare the import of all rows of this file. Submitted again, it is the same import.

    Raises PermissionMissingError, ReasonMissingError, FileNotReadyError, and ImportOutdatedError if a recipient is in
    the register since the check: then the file is checked again.
    """
    if not reason.strip():
        raise ReasonMissingError
    try:
        return _submit(file_id, actor, reason.strip())
    except ImportOutdatedError:
        recheck_outdated(file_id, actor=actor)
        raise


@transaction.atomic
def _submit(file_id: UUID, actor: User, reason: str) -> Operation:
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
        payload=_payload(file, added, rows, reason),
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


def _payload(
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
