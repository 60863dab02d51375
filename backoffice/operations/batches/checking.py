"""Check the rows of a file in the background: each by the rules for its sort, then the rows against each other.

A check is continued where it stopped: by the next message, or by the sweeper. One process at a time has the lease, and
it stores nothing of a check that was restarted meanwhile.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter
from uuid import UUID

from django.db import transaction
from django.utils import translation

from backoffice.core import background, clock
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.core.leases import Lease, LeaseLostError, acquire_lease
from backoffice.ledger import accounts as ledger
from backoffice.operations.batches.columns import FileColumns, with_retried_row
from backoffice.operations.batches.payout_rows import PayoutRows
from backoffice.operations.batches.reading import (
    FileRow,
    UnreadableFileError,
    delimiter_of,
    is_workbook,
    read_rows,
)
from backoffice.operations.batches.recipient_rows import RecipientRows
from backoffice.operations.batches.retried_rows import check_retried
from backoffice.operations.batches.row_rules import RowRules, cell_errors
from backoffice.operations.kinds.recipient import RecipientKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import FileState, PayoutFile, PayoutFileRow
from payments_gateway import GatewayError, RateLimitedError

CHECK_TASK = "operations.check_payout_file"
CHUNK = 50
TASK_SECONDS = 20.0  # then the next message continues, so that no worker is held by one file
_LEASE = timedelta(seconds=60)
_RATE_LIMIT_PAUSE = timedelta(seconds=5)
_STORED_AT_ONCE = 500
_CHECKED = (
    *("payload", "errors", "has_errors", "flags", "currency", "amount", "recipient_key"),
    "retried_number",
)


class FileChangedError(Exception):
    """The check was restarted, or the file deleted, while a process checked its rows."""


def rules_of(kind: str) -> RowRules:
    """The rules for the rows of a file of this kind."""
    return RecipientRows() if kind == RecipientKind.name else PayoutRows(KINDS[kind])


def columns_of(file: PayoutFile) -> FileColumns:
    """The columns that this file may have."""
    columns = rules_of(file.kind).columns
    return columns if file.retry_of_id is None else with_retried_row(columns)


def check_file(file_id: UUID, *, seconds: float = TASK_SECONDS) -> bool:
    """Check rows for this time, and enqueue the rest; False if another process checks them, or nothing is due."""
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
        except FileChangedError:
            file.next_check_at = None  # the message of the restart may have found the lease taken
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
    """Store the texts of all rows in one commit, with what is wrong with a text itself; False if the file cannot be
    read.
    """
    content = bytes(file.content)
    try:
        header, *rows = read_rows(content)
    except UnreadableFileError as exc:
        with transaction.atomic():
            _lock_unchanged(file, lease)
            file.problem, file.state = exc.problem, FileState.UNREADABLE
            file.save(update_fields=["problem", "state"])
        return False
    columns = {column: name for name, column in file.mapping.items()}
    names = [columns.get(title, "") for title in header.cells]
    delimiter = "" if is_workbook(content) else delimiter_of(content)
    with ledger.accounts_together():
        found = [_file_row(file, names, row, delimiter) for row in rows]
    with transaction.atomic():
        _lock_unchanged(file, lease)
        file.rows.all().delete()
        PayoutFileRow.objects.bulk_create(found, batch_size=_STORED_AT_ONCE)
        file.row_count, file.checked_count = len(found), 0
        file.save(update_fields=["row_count", "checked_count"])
    return True


def _lock_unchanged(file: PayoutFile, lease: Lease) -> None:
    """Lock lease and file until the end of the transaction.

    Raises LeaseLostError, and FileChangedError unless the file is as this process last read or stored it.
    """
    lease.verify()
    fields = ("state", "mapping", "row_count", "checked_count")
    stored = PayoutFile.objects.select_for_update().filter(pk=file.pk).values_list(*fields).first()
    if stored != tuple(getattr(file, name) for name in fields):
        raise FileChangedError


def _file_row(file: PayoutFile, names: list[str], row: FileRow, delimiter: str) -> PayoutFileRow:
    """A row as it is in the file. A column without a field has an empty name, and further cells belong to none."""
    cells = {name: text for name, text in zip(names, row.cells, strict=False) if name}
    errors = cell_errors(names, row, delimiter)
    return PayoutFileRow(file=file, number=row.number, cells=_with_codes(cells), errors=errors)


def _with_codes(cells: dict[str, str]) -> dict[str, str]:
    """The cells with the code of a bank that is named, and that of a currency in capital letters."""
    codes: dict[str, Callable[[str], str]] = {"bank_code": ledger.bank_code_of, "currency": str.upper}
    return {name: codes[name](text) if name in codes else text for name, text in cells.items()}


def _check_chunk(file: PayoutFile, lease: Lease) -> None:
    """Check the next rows, up to one for which the provider accepts no more requests now."""
    rules = rules_of(file.kind)
    following = list(file.rows.order_by("number")[file.checked_count : file.checked_count + CHUNK])
    checked: list[PayoutFileRow] = []
    with ledger.accounts_together(rules.account(row.cells) for row in following):
        rules.read_ahead(following)
        for row in following:
            if not _read_holder(*rules.account(row.cells)):
                file.next_check_at = clock.now() + _RATE_LIMIT_PAUSE
                break
            _check_row(rules, row)
            checked.append(row)
    rules.check_together(checked)
    check_retried(file, checked)
    for row in checked:
        row.has_errors = bool(row.errors)
    with transaction.atomic():
        _lock_unchanged(file, lease)
        # Several times as fast as `bulk_update`, whose statement has a condition for each row and column.
        PayoutFileRow.objects.bulk_create(
            checked, update_conflicts=True, unique_fields=["id"], update_fields=_CHECKED
        )
        file.checked_count += len(checked)
        file.save(update_fields=["checked_count", "next_check_at"])


def _check_row(rules: RowRules, row: PayoutFileRow) -> None:
    """Check a row by its rules. One whose texts have errors already stays invalid, even if its rules accept them."""
    given = row.errors
    rules.check(row)
    if given:
        row.errors, row.payload = [*given, *row.errors], None


def _read_holder(number: str, bank: str) -> bool:
    """Read the holder of the row's account, so that the form finds the answer; False if it has to wait."""
    if not (number.isdecimal() and len(number) == 10 and bank in ledger.banks()):
        return True
    try:
        ledger.resolve_account_holder(number, bank)
    except RateLimitedError:
        return False
    except GatewayError:
        return True  # the form reports it beside the account
    return True


def _finish(file: PayoutFile, lease: Lease) -> None:
    """Compare the rows with each other, and end the check."""
    known = file.rows.exclude(recipient_key="")
    valid, wrong = known.filter(payload__isnull=False), known.filter(payload__isnull=True)
    rows = sorted([*valid.defer("cells"), *wrong], key=attrgetter("number"))
    changed = rules_of(file.kind).check_whole(rows)
    for row in changed:
        row.has_errors = bool(row.errors)
    with transaction.atomic():
        _lock_unchanged(file, lease)
        PayoutFileRow.objects.bulk_update(
            changed, ["errors", "has_errors", "flags", "similar"], batch_size=_STORED_AT_ONCE
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
