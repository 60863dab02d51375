"""Check a file of payouts in the background: each row by the form of its kind, then the rows against each other.

A check is continued where it stopped: by the next message, or by the sweeper. One process at a time has the lease.
"""

import time
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.utils import translation

from backoffice.core import background, clock
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.core.leases import Lease, LeaseLostError, acquire_lease
from backoffice.ledger import accounts as ledger
from backoffice.operations.allow_list import problem_of_row
from backoffice.operations.batches.earlier_payments import (
    RowPayment,
    earlier_payments,
    repeated_in_file,
)
from backoffice.operations.batches.reading import UnreadableFileError, read_rows
from backoffice.operations.kinds.base import KindForm
from backoffice.operations.kinds.form_fields import NameComparison
from backoffice.operations.kinds.registry import KINDS, AnyKind
from backoffice.operations.models.batches import FileState, PayoutFile, PayoutFileRow, RowFlag
from payments_gateway import GatewayError, RateLimitedError

CHECK_TASK = "operations.check_payout_file"
CHUNK = 50
TASK_SECONDS = 20.0  # then the next message continues, so that no worker is held by one file
_LEASE = timedelta(seconds=60)
_RATE_LIMIT_PAUSE = timedelta(seconds=5)
_STORED_AT_ONCE = 500
_CHECKED = ("payload", "errors", "has_errors", "flags", "currency", "amount", "recipient_key")
_NAME_FLAGS = {
    NameComparison.CLOSE: RowFlag.NAME_CLOSE,
    NameComparison.DIFFERENT: RowFlag.NAME_DIFFERENT,
}


def check_file(file_id: UUID, *, seconds: float = TASK_SECONDS) -> bool:
    """Check rows for so many seconds, and enqueue the rest; False if another process does, or nothing is due."""
    lease = acquire_lease(f"file:{file_id.hex}", _LEASE)
    if lease is None:
        return False
    with lease:
        file = PayoutFile.objects.filter(pk=file_id, state=FileState.CHECKING).first()
        if file is None or (file.next_check_at and file.next_check_at > clock.now()):
            return False
        try:
            with translation.override(file.language):
                _check(file, lease, until=time.monotonic() + seconds)
        except LeaseLostError:
            return False
    if file.state == FileState.CHECKING and file.next_check_at is None:
        background.enqueue_on_commit(CHECK_TASK, file.pk)
    return True


def _check(file: PayoutFile, lease: Lease, *, until: float) -> None:
    file.next_check_at = None
    if not file.row_count and not _store_rows(file, lease):
        return
    while file.checked_count < file.row_count and file.next_check_at is None and time.monotonic() < until:
        _check_chunk(file, lease)
    if file.checked_count == file.row_count:
        _finish(file, lease)


def _store_rows(file: PayoutFile, lease: Lease) -> bool:
    """Store the texts of all rows in one commit; False if the file cannot be read."""
    columns = {column: name for name, column in file.mapping.items()}
    try:
        header, *rows = read_rows(bytes(file.content))
    except UnreadableFileError as exc:
        file.problem, file.state = exc.problem, FileState.UNREADABLE
        file.save(update_fields=["problem", "state"])
        return False
    names = [columns.get(title, "") for title in header.cells]
    found = [
        PayoutFileRow(
            file=file,
            number=row.number,
            cells={name: text for name, text in zip(names, row.cells, strict=False) if name},
        )
        for row in rows
    ]
    with transaction.atomic():
        lease.verify()
        file.rows.all().delete()
        PayoutFileRow.objects.bulk_create(found, batch_size=_STORED_AT_ONCE)
        file.row_count, file.checked_count = len(found), 0
        file.save(update_fields=["row_count", "checked_count"])
    return True


def _check_chunk(file: PayoutFile, lease: Lease) -> None:
    """Check the next rows, up to one for which the provider accepts no more requests now."""
    kind = KINDS[file.kind]
    following = file.rows.order_by("number")[file.checked_count : file.checked_count + CHUNK]
    checked: list[PayoutFileRow] = []
    for row in following:
        if not _read_holder(row.cells):
            file.next_check_at = clock.now() + _RATE_LIMIT_PAUSE
            break
        _check_row(kind, row)
        checked.append(row)
    _compare_with_earlier(kind, checked)
    with transaction.atomic():
        lease.verify()
        PayoutFileRow.objects.bulk_update(checked, _CHECKED)
        file.checked_count += len(checked)
        file.save(update_fields=["checked_count", "next_check_at"])


def _read_holder(cells: dict[str, str]) -> bool:
    """Read the holder of the row's account, so that the form finds the answer; False if it has to wait."""
    number, bank = cells.get("account_number", ""), cells.get("bank_code", "")
    if not (number.isdecimal() and len(number) == 10 and bank in ledger.banks()):
        return True
    try:
        ledger.resolve_account_holder(number, bank)
    except RateLimitedError:
        return False
    except GatewayError:
        return True  # the form reports it beside the account
    return True


def _check_row(kind: AnyKind, row: PayoutFileRow) -> None:
    form = row_form(kind, row.cells)
    row.payload, row.flags = None, []
    row.errors = [
        [name if name in kind.file_fields else "", " ".join(map(str, errors))]
        for name, errors in form.errors.items()
    ]
    if row.errors:
        return
    payload = form.payload()
    debit, recipient = kind.debit(payload), kind.recipient(payload)
    if debit is None:
        raise ValueError(f"{kind.name} debits nothing")
    row.payload, row.recipient_key = payload.stored(), recipient.key
    row.currency, row.amount = debit.currency, debit.amount
    problem = problem_of_row(kind.name, (recipient.key, debit.currency))
    row.errors = [[kind.recipient_field, problem]] if problem else []
    match = _NAME_FLAGS.get(getattr(form, "match", None) or NameComparison.EXACT)
    if match:
        row.flags.append(match)
    elif kind.cautions(payload):
        row.flags.append(RowFlag.CAUTION)


def row_form(kind: AnyKind, cells: dict[str, str]) -> KindForm:
    """The form of the kind, filled in as the row says. The balance is compared with the total of the file."""
    confirmed = "on" if cells.get("duplicate_reason") else ""
    form = kind.form_type({**cells, "duplicate_confirmed": confirmed})
    if hasattr(form, "reads_balance"):
        form.reads_balance = False
    return form


def _compare_with_earlier(kind: AnyKind, rows: list[PayoutFileRow]) -> None:
    """Add what is wrong with the rows, or to be checked first, because of other payments."""
    earlier = earlier_payments({row.recipient_key for row in rows if row.payload})
    for row in rows:
        if row.payload:
            payment = payment_of(row)
            problem = earlier.problem(payment)
            row.errors += [["duplicate_reason", problem]] if problem else []
            row.flags += earlier.flags(payment)
        row.has_errors = bool(row.errors)


def payment_of(row: PayoutFileRow) -> RowPayment:
    """What a row without errors of its own pays."""
    reason = str((row.payload or {}).get("duplicate_reason", ""))
    return RowPayment(row.recipient_key, row.currency, row.amount or Decimal(0), reason)


def _finish(file: PayoutFile, lease: Lease) -> None:
    """Compare the rows with each other, and mark the largest of each currency."""
    rows = {row.number: row for row in file.rows.defer("cells") if row.payload}
    problems = repeated_in_file({number: payment_of(row) for number, row in rows.items()})
    largest = {row.currency: row for row in sorted(rows.values(), key=lambda row: row.amount or 0)}
    for number, problem in problems.items():
        rows[number].errors = [*rows[number].errors, ["duplicate_reason", problem]]
        rows[number].has_errors = True
    for row in largest.values():
        row.flags = [*dict.fromkeys([*row.flags, RowFlag.LARGEST])]
    changed = {row.number: row for row in [*largest.values(), *(rows[number] for number in problems)]}
    with transaction.atomic():
        lease.verify()
        PayoutFileRow.objects.bulk_update(
            changed.values(), ["errors", "has_errors", "flags"], batch_size=_STORED_AT_ONCE
        )
        file.error_count = file.rows.filter(has_errors=True).count()
        file.state, file.next_check_at = FileState.CHECKED, None
        file.save(update_fields=["error_count", "state", "next_check_at"])


def check_due() -> int:
    """Continue the checks whose message was lost, a chunk of each; returns how many were continued."""
    due = PayoutFile.objects.filter(state=FileState.CHECKING).exclude(next_check_at__gt=clock.now())
    return sum(run_each_isolated(_continue, dict(due.values_list("pk", "name")[:CHUNK]), failed=ignore))


def _continue(file_id: UUID) -> bool:
    return check_file(file_id, seconds=0.1)
