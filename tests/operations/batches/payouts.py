"""Files of payouts and batches, made by the services."""

import io
from collections.abc import Sequence

import xlsxwriter
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.batches import checking, creation, files, submission
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.batches import PayoutFile
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests import factories

HEADER = "currency,amount,receiver_username,memo,duplicate_reason"


def transfers(count: int, *, amount: str = "1000.00", first: int = 1) -> list[str]:
    """Rows of transfers, each to a person of its own."""
    return [f"NGN,{amount},person.{number},week 46," for number in range(first, first + count)]


def uploaded(
    person: User, rows: Sequence[str], *, kind: str = "transfer", header: str = HEADER
) -> PayoutFile:
    content = "\n".join([header, *rows]).encode()
    return files.upload_file(actor=person, kind=kind, name="payroll.csv", content=content, language="en")


def workbook(*rows: Sequence[object]) -> bytes:
    """An Excel workbook with these rows; texts stay texts."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True, "strings_to_formulas": False}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    return content.getvalue()


def checked(person: User, rows: Sequence[str], *, kind: str = "transfer", header: str = HEADER) -> PayoutFile:
    """A file whose check has ended."""
    return check(uploaded(person, rows, kind=kind, header=header), person)


def check(file: PayoutFile, person: User) -> PayoutFile:
    """The same file, with the columns that were guessed, after its check has ended."""
    files.check_columns(file.pk, actor=person, mapping=file.mapping)
    checking.check_file(file.pk, seconds=60)
    file.refresh_from_db()
    return file


def prepared(person: User, rows: Sequence[str]) -> Operation:
    """A pending batch."""
    return submission.submit_file(checked(person, rows).pk, actor=person)


def approve(batch: Operation, approver: User, *, typed: str | None = None) -> Operation:
    """Approve it, with what its page asks to be typed, or with this text."""
    kind, payload = read_content(batch)
    asked = kind.confirmation(payload)
    if typed is None:
        typed = asked.expected if asked else ""
    return approvals.approve_operation(
        batch.pk,
        actor=approver,
        digest=batch.digest,
        second_factor_at=timezone.now(),
        confirmation=approvals.ApproverConfirmation(typed),
    )


def applied(person: User, approver: User, rows: Sequence[str]) -> Operation:
    """A batch that one person approved, whose rows are operations."""
    return created(approve(prepared(person, rows), approver))


def created(batch: Operation) -> Operation:
    """The approved batch, once its rows are operations."""
    assert creation.create_operations(batch.pk)
    batch.refresh_from_db()
    return batch


def row_operations(batch: Operation) -> list[Operation]:
    """The operations of the rows, in order."""
    return list(Operation.objects.filter(batch_row__batch=batch).order_by("batch_row__number"))


def release(operation: Operation, person: User) -> Operation:
    return factories.release(operation, person)
