"""Files of recipients and imports, made by the services."""

from collections.abc import Sequence

from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.batches import checking, files, submission
from backoffice.operations.models.batches import PayoutFile
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals

HEADER = "type,name,account,bank_code,network,name_reason,alias,currency,notes"
REASON = "The list of suppliers, signed by Finance"


def users(count: int, *, first: int = 1) -> list[str]:
    """Rows of users of the provider, none like another."""
    return [
        f"user,Person {number},person{number * 1117:06},,,,,NGN," for number in range(first, first + count)
    ]


def checked(person: User, rows: Sequence[str], *, header: str = HEADER) -> PayoutFile:
    """A file whose check has ended."""
    content = "\n".join([header, *rows]).encode()
    file = files.upload_file(
        actor=person, kind="recipient", name="suppliers.csv", content=content, language="en"
    )
    files.check_columns(file.pk, actor=person, mapping=file.mapping)
    checking.check_file(file.pk, seconds=60)
    file.refresh_from_db()
    return file


def prepared(person: User, rows: Sequence[str]) -> Operation:
    """A pending import."""
    return submission.submit_recipients(checked(person, rows).pk, actor=person, reason=REASON)


def approve(operation: Operation, approver: User) -> Operation:
    return approvals.approve_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
    )
