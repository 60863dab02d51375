"""Whether an operation, its approvals and its release are those that people made with Countersign.

Two things are checked, because anyone who has the database alone can write every row: each row has a valid seal, which
needs a key outside the database, and the audit log has the same content and the same people. Everything that
takes effect by approval is checked at that moment, and every open operation once a minute.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from uuid import UUID

from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import SealedRow, SealState
from backoffice.operations.errors import AlteredRecordError
from backoffice.operations.kinds.base import Debit
from backoffice.operations.kinds.batch import ROWS_DIGEST, currency_totals
from backoffice.operations.kinds.recipient_import import IMPORT_DIGEST, is_as_approved
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import BatchRow, row_operation_id, rows_digest
from backoffice.operations.models.operations import Approval, Operation, Release, content_digest
from backoffice.operations.models.reason_codes import RecordFault
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status

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

logger = logging.getLogger(__name__)
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading raises where JSON of a row or entry has another shape than any that Countersign stores."""


def check_record(
    operation: Operation,
    approvals: Sequence[Approval],
    release: Release | None,
    *,
    trusts_digests: bool = False,
) -> None:
    """Raises AlteredRecordError unless each row has a valid seal and the audit log agrees with it.

    Pass the rows that are acted on, not others read again: the database could show different ones. With
    `trusts_digests` an operation of a batch is compared with the digests that this process has read before
    (`_BatchFaults`).
    """
    for approval in approvals:
        approval.operation = operation
    if release is not None:
        release.operation = operation
    try:
        entries = _logged([operation.pk])[operation.pk]
        unsealed = _seal_faults(operation, approvals, release)
        unlogged = _log_faults(operation, approvals, release, entries)
        unlogged += _BatchFaults(trusts_digests=trusts_digests).of(operation, approvals, entries)
    except UNREADABLE as exc:
        logger.exception("The record of %s cannot be read", operation.reference)
        raise AlteredRecordError(Refusal.LOG_MISMATCH, [RecordFault.UNREADABLE]) from exc
    if unsealed or unlogged:
        code = Refusal.SEAL_INVALID if unsealed else Refusal.LOG_MISMATCH
        raise AlteredRecordError(code, [*unsealed, *unlogged])


def altered_operations(operations: Sequence[UUID]) -> list[Operation]:
    """Those of these operations that are open and do not pass `check_record`."""
    found = Operation.objects.filter(pk__in=operations, closed_at__isnull=True).order_by("reference")
    rows = list(found.select_related("release", "batch_row").prefetch_related("approvals"))
    logged, in_batches = _logged([operation.pk for operation in rows]), _BatchFaults()
    return [operation for operation in rows if _has_fault(operation, logged[operation.pk], in_batches)]


def _has_fault(operation: Operation, entries: Sequence[Entry], in_batches: "_BatchFaults") -> bool:
    approvals, release = list(operation.approvals.all()), getattr(operation, "release", None)
    try:
        return bool(
            _seal_faults(operation, approvals, release)
            or _log_faults(operation, approvals, release, entries)
            or in_batches.of(operation, approvals, entries)
        )
    except UNREADABLE:
        logger.exception("The record of %s cannot be read", operation.reference)
        return True


class _BatchFaults:
    """Where a batch differs from its rows, or the operation of a row from its batch. Reads each batch once.

    With `trusts_digests`, digests that this process found to be those of an approved batch are not read again: while
    its operations are released and sent, each is compared with them. The inspection of each minute reads all rows.
    """

    def __init__(self, *, trusts_digests: bool = False) -> None:
        self._trusts_digests = trusts_digests
        self._read: dict[UUID, tuple[Operation, frozenset[str], list[RecordFault]]] = {}

    def of(
        self, operation: Operation, approvals: Sequence[Approval], entries: Sequence[Entry]
    ) -> list[RecordFault]:
        if not isinstance(operation.payload, dict):
            return [RecordFault.UNREADABLE]
        if IMPORT_DIGEST in operation.payload:
            is_whole = operation.is_closed or is_as_approved(operation)
            return [] if is_whole else [RecordFault.BATCH_ROWS]
        if ROWS_DIGEST in operation.payload:
            # What approvers see is compared while they decide; later each row is compared with its digest.
            is_shown_right = operation.status != Status.PENDING or _has_its_totals(operation)
            return [] if is_shown_right and _digests_of_rows(operation) else [RecordFault.BATCH_ROWS]
        [[_, reference], *_] = _recorded(entries, Action.OPERATION_PREPARED, "batch") or [[None, None]]
        if not reference:
            return []
        row: BatchRow | None = getattr(operation, "batch_row", None)
        if row is None:
            return [RecordFault.BATCH_LINK]
        batch, digests, faults = self._batch(row.batch_id)
        approvers = {approval.approver_id for approval in batch.approvals.all()}
        is_its_row = (
            reference == batch.reference
            and row.digest == operation.digest
            and row.digest in digests
            and operation.pk == row_operation_id(batch.pk, row.number)
            and (operation.preparer_id, operation.prepared_from_id) == (batch.preparer_id, batch.pk)
            and {approval.approver_id for approval in approvals} >= approvers
        )
        return faults if is_its_row else [*faults, RecordFault.BATCH_LINK]

    def _batch(self, pk: UUID) -> tuple[Operation, frozenset[str], list[RecordFault]]:
        if pk not in self._read:
            batch = Operation.objects.prefetch_related("approvals").get(pk=pk)
            given = list(batch.approvals.all())
            faults = [*_seal_faults(batch, given, None), *_log_faults(batch, given, None, _logged([pk])[pk])]
            digests = _digests_of_rows(batch, trusts_digests=self._trusts_digests)
            is_whole = bool(digests) and len(given) >= batch.approvals_needed
            self._read[pk] = batch, digests, faults if is_whole else [*faults, RecordFault.BATCH_ROWS]
        return self._read[pk]


def _digests_of_rows(batch: Operation, *, trusts_digests: bool = False) -> frozenset[str]:
    """The digests of the rows; none unless, in their order, they have the digest that was approved."""
    read = _kept_digests if trusts_digests else _read_digests
    try:
        digests = read(batch.pk, str(batch.payload.get(ROWS_DIGEST)))
    except _RowsDifferError:
        return frozenset()
    return digests if batch.digest == batch.current_digest() else frozenset()


class _RowsDifferError(Exception):
    """The rows of a batch are not those that were approved."""


def _read_digests(batch_id: UUID, approved: str) -> frozenset[str]:
    rows = BatchRow.objects.filter(batch=batch_id).order_by("number")
    digests = list(rows.values_list("digest", flat=True))
    if rows_digest(digests) != approved:
        raise _RowsDifferError
    return frozenset(digests)


_kept_digests = lru_cache(maxsize=16)(_read_digests)  # an error is not kept


def _has_its_totals(batch: Operation) -> bool:
    """Whether each row has the content of its digest, is listed as that content says, and all add up to the totals."""
    debits = []
    for row in batch.rows.order_by("number").iterator(chunk_size=500):
        debit = _debit_of(row)
        if debit is None:
            return False
        debits.append(debit)
    totals = [total.model_dump(mode="json") for total in currency_totals(debits)]
    return bool(batch.payload.get("totals") == totals and batch.payload.get("count") == len(debits))


def _debit_of(row: BatchRow) -> Debit | None:
    """What the row debits; None if it is not listed as its content says."""
    if row.digest != content_digest(row_operation_id(row.batch_id, row.number), row.kind, row.payload):
        return None
    kind = KINDS[row.kind]
    payload = kind.read(row.payload)
    debit, recipient = kind.debit(payload), kind.recipient(payload)
    listed = (row.currency, row.amount, row.recipient_key)
    return debit if debit and listed == (debit.currency, debit.amount, recipient.key) else None


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
    names = ("digest", "kind", "rule", "policy_version", "levels")
    prepared = _recorded(entries, Action.OPERATION_PREPARED, *names)
    terms = [operation.rule, operation.policy_version, operation.levels]
    if prepared != [[operation.preparer_id, operation.current_digest(), operation.kind, *terms]]:
        faults.append(RecordFault.LOGGED_PREPARATION)
    approved = _recorded(entries, Action.OPERATION_APPROVED, "digest", "needed", "on_behalf_of")
    terms_of = [operation.digest, operation.approvals_needed]
    given = [[one.approver_id, *terms_of, one.on_behalf_of_id] for one in approvals]
    if sorted(approved, key=str) != sorted(given, key=str):
        faults.append(RecordFault.LOGGED_APPROVALS)
    if release is not None and not _is_released_by(release, operation, entries):
        faults.append(RecordFault.LOGGED_RELEASE)
    if not operation.is_closed and any(entry.action in _CLOSING for entry in entries):
        faults.append(RecordFault.LOGGED_CLOSING)
    return faults


def _is_released_by(release: Release, operation: Operation, entries: Sequence[Entry]) -> bool:
    """Whether the newest entry about sending is this release; a release that was claimed is used up.

    A release that was renewed after a refused code counts as that of the person who released the operation last. An
    entry inserted later does not make a used release valid again: the attempt that it orders was claimed.
    """
    claimed = sum(1 for entry in entries if entry.action == Action.OPERATION_CLAIMED)
    if (release.attempt_number or 1) <= claimed:
        return False
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
